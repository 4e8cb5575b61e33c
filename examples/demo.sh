#!/bin/sh
# Make demo runs this. Each step prints how long it took. The last line is the example client's: how many messages it
# judged, and what it found.
#
# One build of all three programs keeps the processors busy. The step after it checks that the code it compiled is current.
set -eu
go=${GO:-go}
begin() { printf '%-58s' "$1"; start=$(date +%s); }
end() { printf '%3d s\n' $(($(date +%s) - start)); }

begin 'fetch: download the modules'
$go mod download
end

begin 'build: compile the generator, the agent, the client'
mkdir -p bin
$go build -o bin/ ./cmd/acpgen ./examples/agent ./examples/client
end

begin 'generate: make the code anew, find it the same'
bin/acpgen -check
end

echo 'run: the client holds a conversation with the agent'
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
mkdir "$temp/root"
start=$(date +%s)
{
	bin/client -root "$temp/root" -warnings -script examples/client/testdata/demo.txt -- bin/agent || echo $? >"$temp/status"
} | sed -e "\$w $temp/last" -e '$d' # the last line comes after the time
printf '%-58s' 'run: done'
end
cat "$temp/last"
exit "$(cat "$temp/status" 2>/dev/null || echo 0)"
