#!/bin/sh
# Usage: pages-report.sh DIR
#
# Compares schema/PAGES with the pages in the protocol's repository. If they differ, it writes DIR/title and DIR/body.md.
# It writes the list as it would be now into DIR/PAGES. It needs gh and git. What it reads is published by others: it is
# never a part of a command.
set -eu
repository=agentclientprotocol/agent-client-protocol
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
rm -f "$out/title" "$out/body.md"

gh api "repos/$repository/git/trees/HEAD?recursive=1" \
	--jq 'if .truncated then error("the tree is not whole") else .tree[] | select(.type == "blob") | "\(.sha) \(.path)" end' >"$out/tree"
{
	grep '^#' schema/PAGES
	LC_ALL=C grep -E '^[0-9a-f]{40} docs/protocol/v[0-9]+/[0-9a-z-]+\.mdx$' "$out/tree" | grep -v '/schema\.mdx$' | LC_ALL=C sort -k 2
} >"$out/PAGES"
rm "$out/tree"
grep -q '^[0-9a-f]' "$out/PAGES" || { echo "the repository has no pages: have they moved?" >&2; exit 1; }
changes=$(awk '/^#/ {next} NR == FNR {have[$2] = $1; next} {now[$2]; if (!($2 in have)) print "new", $2; else if (have[$2] != $1) print "changed", $2}
	END {for (p in have) if (!(p in now)) print "removed", p}' schema/PAGES "$out/PAGES" | LC_ALL=C sort -k 2)
if test -z "$changes"; then
	echo "no changed pages" >&2
	exit 0
fi
# The digest tells this change from later ones, so that a closed issue does not hide them.
echo "Changed protocol pages: $(echo "$changes" | wc -l | tr -d ' '), $(git hash-object "$out/PAGES" | cut -c 1-12)" >"$out/title"
{
	echo "The protocol's repository has other pages than those from which the requirements were read:"
	echo
	echo "$changes" | sed "s|\(.*\) \(.*\)|- \1: [\2](https://github.com/$repository/commits/HEAD/\2)|"
	echo
	echo "Read what has changed, and correct \`conformance/internal/requirement\` and the rules. Then replace \`schema/PAGES\`:"
	echo "\`sh .github/scripts/pages-report.sh /tmp/pages && cp /tmp/pages/PAGES schema/PAGES\`"
} >"$out/body.md"
cat "$out/title"
