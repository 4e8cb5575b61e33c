#!/bin/sh
# Usage: schema-issue.sh DIR
#
# Opens the issue that schema-report.sh wrote into DIR, or updates the open one. An issue with the same title is
# neither opened twice nor opened again.
set -eu
title=$(head -n 1 "$1/title" | tr -cd '0-9A-Za-z @/.,:+-' | cut -c 1-200)
known=$(gh issue list --label schema --state all --limit 100 --json number,state,title --jq '.[] | "\(.number) \(.state) \(.title)"')
if echo "$known" | sed -n 's/^[0-9]* CLOSED //p' | grep -Fqx -e "$title"; then
	echo "the issue \"$title\" is closed" >&2
	exit 0
fi
open=$(echo "$known" | awk '$2 == "OPEN" {print $1; exit}')
if test -n "$open"; then
	gh issue edit "$open" --title "$title" --body-file "$1/body.md"
else
	gh label create schema --description "A newer schema of the protocol" --force
	gh issue create --label schema --title "$title" --body-file "$1/body.md"
fi
