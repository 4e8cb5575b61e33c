#!/bin/sh
# Replaces the schemas by those of a release of the npm package, and says so in schema/VERSIONS: in this
# repository, or in the folder that is named.
# Used by `make schema VERSION=x.y.z` and `make api FROM=x.y.z`; needs npm and node.
set -eu
version=$1
package=@agentclientprotocol/sdk
cd "${2:-$(dirname "$0")/..}"
mkdir -p schema

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$package@$version" >/dev/null) || { echo "npm does not give $package@$version" >&2; exit 1; }
(cd "$work" && tar -xzf ./*.tgz)
date=$(npm view "$package@$version" time --json | node -e '
	let text = ""
	process.stdin.on("data", (d) => (text += d)).on("end", () => {
		console.log(JSON.parse(text)[process.argv[1]].slice(0, 10))
	})' "$version")

files="v1/schema.json v1/schema.unstable.json v2/schema.json v2/schema.unstable.json"
for from in $files; do
	test -s "$work/package/schema/$from" || { echo "$package@$version has no schema/$from" >&2; exit 1; }
done
{
	echo "# path, npm package, version, release date, sha256"
	for from in $files; do
		case $from in
		v1/schema.json) to=schema.json ;;
		*) to=schema/$(echo "$from" | sed 's|/schema||') ;;
		esac
		cp "$work/package/schema/$from" "$to"
		chmod 644 "$to"
		sum=$(node -e 'console.log(require("crypto").createHash("sha256").update(require("fs").readFileSync(process.argv[1])).digest("hex"))' "$to")
		echo "$to $package $version $date $sum"
	done
} >"$work/VERSIONS"
mv "$work/VERSIONS" schema/VERSIONS
echo "schemas of $package $version, released $date" >&2
