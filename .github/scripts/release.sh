#!/bin/sh
# Usage: release.sh VERSION DIR
#
# Builds the command acp of a tagged commit for six platforms, and puts the archives and their SHA-256 into DIR.
set -eu
version=$1
case $version in
*[!0-9A-Za-z.+-]* | [!v]*) echo "release.sh: $version is no version" >&2 && exit 2 ;;
esac
mkdir -p "$2"
out=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/}
	case $GOOS in windows) exe=acp.exe ;; *) exe=acp ;; esac
	name=acp_${version}_${GOOS}_$GOARCH
	mkdir "$work/$name"
	(cd "$root/cmd/acp" && CGO_ENABLED=0 GOOS=$GOOS GOARCH=$GOARCH \
		go build -trimpath -ldflags="-s -w -X main.released=$version" -o "$work/$name/$exe" .)
	cp "$root/LICENSE" "$root/NOTICE" "$work/$name"
	tar -czf "$out/$name.tar.gz" -C "$work" "$name"
done
cd "$out"
if command -v sha256sum >/dev/null 2>&1; then sha256sum acp_*.tar.gz; else shasum -a 256 acp_*.tar.gz; fi >SHA256SUMS
