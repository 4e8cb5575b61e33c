#!/bin/sh
# Usage: fetch.sh SOURCE [DIR]
#
# Replaces the schemas in DIR, by default this repository, by those of SOURCE, and records in DIR/schema/VERSIONS
# where each comes from. SOURCE is one of
#
#   x.y.z              that version of the npm package; needs npm and node
#   a folder, .tar.gz  the npm package, the source of the protocol's repository, or the files of one of its
#   or .tgz            releases, schema-vX.Y.Z: schema.json, schema.unstable.json and meta.json
#
# A folder or archive whose name ends like a release's is that release; RELEASE=schema-vX.Y.Z names it otherwise, and
# DATE=YYYY-MM-DD says when it appeared. What is not known is recorded as "-". If the bytes of a release are already
# here, only its name is added to what is recorded.
set -eu
package=@agentclientprotocol/sdk
repository=agentclientprotocol/agent-client-protocol

fail() {
	echo "fetch.sh: $*" >&2
	exit 1
}
sha256() {
	if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}
# member prints the value of the first member of a JSON file with a name, if it stands on one line.
member() {
	sed -n "s/^.*\"$2\": *\"\{0,1\}\([^\",]*\).*\$/\1/p" "$1" | sed 1q
}

source=${1:?"want a version, a folder or an archive"}
to=${2:-$(dirname "$0")/..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# from becomes the folder with the files, and name what it is called.
from=$work/unpacked
date=${DATE:--}
if test -d "$source"; then
	from=$(cd "$source" && pwd)
	name=$(basename "$from")
elif test -f "$source"; then
	name=$(basename "$source" | sed 's/\.tar\.gz$//; s/\.tgz$//')
	mkdir "$from"
	tar -xzf "$source" -C "$from" || fail "$source is no .tar.gz"
else
	name=$source
	case $name in
	[!0-9]* | *[!0-9A-Za-z.+-]*) fail "$name is no version, no folder and no archive" ;;
	esac
	mkdir "$from"
	(cd "$work" && npm pack --silent "$package@$name" >/dev/null) || fail "npm does not give $package@$name"
	tar -xzf "$work"/*.tgz -C "$from"
	date=$(npm view "$package@$name" time --json | node -e '
		let text = ""
		process.stdin.on("data", (d) => (text += d)).on("end", () => {
			console.log(JSON.parse(text)[process.argv[1]].slice(0, 10))
		})' "$name")
fi
# Most archives have one folder at the top.
set -- "$from"/*
if test "$from" = "$work/unpacked" && test $# = 1 && test -d "$1"; then
	from=$1
fi

release=${RELEASE:-$(echo "$name" | sed -n 's/^.*\(schema-v[0-9]\)/\1/p')}
major=$(echo "$release" | sed -n 's/^schema-v\([0-9]*\)\..*$/\1/p')
if test -f "$from/package.json"; then
	origin=$(member "$from/package.json" name)
	version=$(member "$from/package.json" version)
elif test -n "$major"; then
	origin=$repository
	version=$release
else
	origin=local
	version=$(printf %s "$name" | tr -c '0-9A-Za-z.+-' _)
fi
log=$from/schema/v$major/CHANGELOG.md
if test "$date" = - && test -f "$log"; then
	date=$(sed -n "s/^## \[${release#schema-v}\].* - \([0-9-]*\)\$/\1/p" "$log" | sed 1q)
fi
date=${date:--}
case $origin$version$release$date in
*[!0-9A-Za-z@/.+-]*) fail "a name, version or date of $source has other characters than letters, digits and @ / . + -" ;;
esac

# flat is the version of the protocol whose files stand in the folder itself.
flat=
if test -f "$from/schema.json"; then
	test ! -f "$from/meta.json" || flat=$(member "$from/meta.json" version)
	test -n "$flat" || flat=$major
	test -n "$flat" || fail "meta.json or RELEASE must say which version of the protocol $name/schema.json describes"
fi

# Everything is put into stage first.
count=0
mkdir -p "$work/stage/schema"
echo "# path, npm package or other source, version, release date, sha256, the protocol's own release" >"$work/VERSIONS"
for path in schema.json schema/v1.unstable.json schema/v2.json schema/v2.unstable.json; do
	case $path in *v2*) n=2 ;; *) n=1 ;; esac
	case $path in *unstable*) file=schema.unstable.json ;; *) file=schema.json ;; esac
	if test "$flat" = $n; then new=$from/$file; else new=$from/schema/v$n/$file; fi
	row=$(test ! -f "$to/schema/VERSIONS" || grep "^$path " "$to/schema/VERSIONS" || true)
	if test -s "$new"; then
		count=$((count + 1))
		cp "$new" "$work/stage/$path"
		sum=$(sha256 "$new")
		own=-
		case $release in schema-v$n.*) own=$release ;; esac
		listed="$path $origin $version $date $sum"
		case "$row " in *" $sum "*) # The same bytes: what is known of them is still true.
			case $own$row in -*" schema-v$n."*) own=${row##* } ;; esac
			test "$origin" = "$package" || listed="${row%%" $sum"*} $sum"
			;;
		esac
		row="$listed $own"
	fi
	test -z "$row" || echo "$row" >>"$work/VERSIONS"
done
test $count != 0 || fail "$name has no schemas"
test "$origin" != "$package" || test $count = 4 || fail "$package $version has $count of the four schemas"
mv "$work/VERSIONS" "$work/stage/schema/VERSIONS"
chmod -R u=rwX,go=rX "$work/stage"
cp -R "$work/stage/." "$to/"
echo "$count schemas of $origin $version, released $date" >&2
