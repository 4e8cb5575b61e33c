#!/bin/sh
# Usage: schema-report.sh DIR
#
# Compares schema/VERSIONS with the newest version on npm and with the newest releases of the protocol's repository.
# If they have other schemas, it writes DIR/title and DIR/body.md. It needs go, npm, node and gh, and changes nothing
# else. What it reads is published by others: it is never a part of a command.
set -eu
package=@agentclientprotocol/sdk
repository=agentclientprotocol/agent-client-protocol
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/acpgen" ./cmd/acpgen

# same tells whether the schemas of one folder are those of another.
same() {
	for path in schema.json schema/v1.unstable.json schema/v2.json schema/v2.unstable.json; do
		test ! -f "$1/$path" || cmp -s "$2/$path" "$1/$path" || return 1
	done
}

# report adds to the body what the step to a folder of schemas does.
report() { # NAME DIR COMMAND
	echo "$1 has other schemas than this repository. To fetch them: $3"
	echo
	status=0
	"$work/acpgen" -api . "$2" >"$work/api.md" 2>"$work/log" || status=$?
	cat "$work/api.md"
	test $status -le 1 || { printf 'acpgen refuses them:\n\n' && sed 's/^/    /' "$work/log"; }
	echo
}

: >"$work/titles"
: >"$work/body"
have=$(awk -v p="$package" '$2 == p {print $3; exit}' schema/VERSIONS)
latest=$(npm view "$package" version)
echo "$latest" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?' || { echo "npm says that the version is $latest" >&2; exit 1; }
if test "$latest" != "$have"; then
	mkdir "$work/npm"
	sh schema/fetch.sh "$latest" "$work/npm"
	if ! same "$work/npm" .; then
		echo "$package $latest" >>"$work/titles"
		report "$package $latest" "$work/npm" "make schema VERSION=$latest" >>"$work/body"
	fi
fi

for major in 1 2; do
	tag=$(gh release list -R "$repository" --limit 50 --json tagName --jq '.[].tagName' |
		grep -Ex "schema-v$major\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?" | sed 1q)
	if test -z "$tag" || grep -q " $tag\$" schema/VERSIONS; then
		continue
	fi
	gh release download "$tag" -R "$repository" -D "$work/$tag"
	mkdir "$work/v$major"
	cp -R schema.json schema "$work/v$major" # a release has the schemas of one version
	sh schema/fetch.sh "$work/$tag" "$work/v$major"
	if same "$work/v$major" .; then
		echo "$tag" >>"$work/titles"
		printf '%s is what is here. To record its name: make schema FROM=%s\n\n' "$tag" "$tag" >>"$work/body"
	elif ! { test -d "$work/npm" && same "$work/v$major" "$work/npm"; }; then
		echo "$tag" >>"$work/titles"
		report "$tag" "$work/v$major" "make schema FROM=$tag" >>"$work/body"
	fi
done

rm -f "$out/title" "$out/body.md"
if test -s "$work/titles"; then
	printf 'Newer schemas: %s\n' "$(paste -s -d , "$work/titles" | sed 's/,/, /g')" >"$out/title"
	# An issue holds 65,536 characters.
	head -c 60000 "$work/body" | iconv -c -f UTF-8 -t UTF-8 >"$out/body.md"
	cat "$out/title"
else
	echo "no newer schemas than those of $package $have" >&2
fi
