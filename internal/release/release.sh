#!/bin/sh
# Usage: release.sh VERSION
#
# Tags a version of every module that this repository publishes, after the checks, and publishes nothing. It changes no
# file and no branch, and prints the command that publishes the tags. If it fails, there are no tags. CHECKS are the
# checks in place of the usual ones.
#
# In the tree each nested module replaces the others that it requires by their folders. The go command refuses to install
# a module that does so. The tag of a nested module is therefore on a commit of its own, outside of all branches, in which
# the module requires the others at the version that is released.
set -eu
library=github.com/acpgo/sdk
# The folders of the other modules. A module comes after those that it requires.
nested="acp/acpv2 cmd/acp contrib/mcpacp contrib/otelacp contrib/natsacp contrib/sqlitestore"
checks=${CHECKS:-'go run ./cmd/acpgen -check
go test -run "^(TestAPI|TestLeniencyTable|TestRequirementsTable)$" ./internal/test/repo
make check heavy'}
version=${1:?"want a version: make release VERSION=vX.Y.Z"}

fail() {
	printf 'release %s: %s\n' "$version" "$*" >&2
	exit 1
}
# at prints the version of the module in a folder. That of version 2 of the protocol, which is in Preview, has v0.102.3
# where the others have v1.2.3.
at() {
	case $1:$version in
	acp/acpv2:v1.*) echo "$version" | awk -F . -v OFS=. '{ $1 = "v0"; $2 += 100; print }' ;;
	*) echo "$version" ;;
	esac
}
# ready checks the tree.
ready() {
	changes=$(git status --porcelain)
	test -z "$changes" || fail "the tree has changes that are not committed: $changes"
	made=$(git tag --list $tags)
	test -z "$made" || fail "there are tags already:" $made
	heading=$(sed -n 's/^## //p' CHANGELOG.md | sed 1q)
	test "${heading%%,*}" = "$version" || fail "the first section of CHANGELOG.md is \"$heading\"; rename it to \"$version\""
	test -n "$(awk '/^## / { n++; next } n == 1 && NF' CHANGELOG.md)" || fail "the section \"$heading\" of CHANGELOG.md is empty"
}

echo "$version" | grep -Eqx 'v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(alpha|beta|rc)\.[0-9]+)?' ||
	fail "not a version of the form vX.Y.Z or vX.Y.Z-rc.N below v2"
cd "$(git rev-parse --show-toplevel)"
repo=$PWD head=$(git rev-parse HEAD) tags=$version
for dir in $nested; do tags="$tags $dir/$(at "$dir")"; done
ready
sh -exc "$checks" >&2 || fail "a check fails"
ready # the checks take minutes, in which the tree may change, and may write files themselves

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
git clone --quiet --shared --no-checkout . "$temp/clone"
for key in user.name user.email user.signingKey; do
	if value=$(git config "$key"); then git -C "$temp/clone" config "$key" "$value"; fi
done
# The go command finds the modules that are tagged in the clone, and the others where the user has them. Its own cache is
# in the temporary folder: the user's would keep the modules at this version, also if the release fails.
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" GOMODCACHE=$temp/mod GOFLAGS=-modcacherw GOWORK=off
GOPRIVATE=$library GONOPROXY=$library GONOSUMDB=$library
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$temp/clone.insteadOf GIT_CONFIG_VALUE_0=https://$library
export GOPROXY GOMODCACHE GOFLAGS GOWORK GOPRIVATE GONOPROXY GONOSUMDB GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0
cd "$temp/clone"
git checkout --quiet --detach "$head"
for dir in $nested; do
	(cd "$dir" && go mod tidy -diff >&2) || fail "$dir: go mod tidy changes it"
done
git tag --annotate -m "$library $version" "$version"
for dir in $nested; do
	mod=$dir/go.mod
	for module in $(sed -n "s!^\(replace\)\{0,1\}[[:space:]]*\($library[^ ]*\) => .*!\2!p" "$mod"); do
		go mod edit -dropreplace="$module" -require="$module@$(at "${module#"$library"/}")" "$mod"
	done
	if grep '=>' "$mod" >&2; then fail "$mod replaces a module: nobody could install it"; fi
	(cd "$dir" && go mod tidy) || fail "$dir: go mod tidy"
	git add "$dir"
	git commit --quiet -m "$dir: release $(at "$dir")"
	git tag --annotate -m "$library/$dir $(at "$dir")" "$dir/$(at "$dir")"
done
refs=
for tag in $tags; do refs="$refs refs/tags/$tag:refs/tags/$tag"; done
git -C "$repo" fetch --quiet --atomic --no-tags "$temp/clone" $refs
printf 'Tagged, and not published. To publish:\n\n\tgit push --atomic origin %s\n' "$tags"
