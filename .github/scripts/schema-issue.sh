#!/bin/sh
# Usage: schema-issue.sh DIR LABEL
#
# Opens the issue that schema-report.sh or pages-report.sh wrote into DIR, or updates the open one with the label. An
# issue with the same title is neither opened twice nor opened again.
set -eu
label=$2
title=$(head -n 1 "$1/title" | tr -cd '0-9A-Za-z @/.,:+-' | cut -c 1-200)
known=$(gh issue list --label "$label" --state all --limit 100 --json number,state,title --jq '.[] | "\(.number) \(.state) \(.title)"')
if echo "$known" | sed -n 's/^[0-9]* CLOSED //p' | grep -Fqx -e "$title"; then
	echo "the issue \"$title\" is closed" >&2
	exit 0
fi
open=$(echo "$known" | awk '$2 == "OPEN" {print $1; exit}')
if test -n "$open"; then
	gh issue edit "$open" --title "$title" --body-file "$1/body.md"
else
	gh label create "$label" --description "The protocol has changed" --force
	gh issue create --label "$label" --title "$title" --body-file "$1/body.md"
fi
