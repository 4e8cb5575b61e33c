#!/bin/sh
# Make demo runs this. Each step prints how long it took. The last line says how many messages the client and the agent
# exchanged, and that all of them conform to the protocol.
set -eu
go=${GO:-go}
begin() { printf '%-58s' "$1"; start=$(date +%s); }
end() { printf '%3d s\n' $(($(date +%s) - start)); }

begin 'fetch: download the modules'
for module in . cmd/acp examples/kit-agent examples/kit-client; do (cd $module && $go mod download); done
end

begin 'build: compile the generator, acp, the agent, the client'
mkdir -p bin
$go build -o bin/ ./cmd/acpgen
for module in cmd/acp examples/kit-agent examples/kit-client; do (cd $module && $go build -o "$OLDPWD/bin/" .); done
end

begin 'generate: make the code anew, find it the same'
bin/acpgen -check
end

echo 'run: kit-client holds a conversation with kit-agent, and acp records it'
bin=$PWD/bin
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
mkdir "$temp/root"
echo '{"rules": []}' >"$temp/rules.json"
cd "$temp/root"
start=$(date +%s)
# The lines are prompts, commands, and the answers to the questions that follow.
"$bin/kit-client" ../rules.json "$bin/acp" record -o ../demo.jsonl -- "$bin/kit-agent" -state ../state <<'LINES'
Make a plan: think, edit notes.txt, then run `echo Hello from the terminal`.
1
1
Now read notes.txt.
Edit notes.txt once more.
3
:mode all
Edit notes.txt once more.
LINES
echo
printf '%-58s' 'run: done'
end
cd ..
"$bin/acp" check demo.jsonl
