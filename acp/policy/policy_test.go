package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustParse reads rules, one a line.
func mustParse(t testing.TB, lines string) []policy.Rule {
	t.Helper()
	var rules []string
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			rules = append(rules, line)
		}
	}
	parsed, err := policy.Parse([]byte(`{"rules":[` + strings.Join(rules, ",\n") + `]}`))
	if err != nil {
		t.Fatalf("%s: %v", lines, err)
	}
	return parsed
}

func newPolicy(t testing.TB, rules string) *policy.Policy {
	t.Helper()
	p, err := policy.New(mustParse(t, rules), &policy.Options{Home: "/home/me", POSIXShell: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request is what an agent called A wants in /proj, but for what is given.
func request(t testing.TB, call string) policy.Request {
	t.Helper()
	req := policy.Request{Agent: "A", Cwd: "/proj"}
	if !strings.Contains(call, `"title"`) {
		call += `,"title":"T"`
	}
	if err := json.Unmarshal([]byte(`{"toolCallId":"t",`+call+`}`), &req.ToolCall); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return req
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Calls of the table, in short.
func reads(paths ...string) string { return touching("read", paths...) }
func edits(paths ...string) string { return touching("edit", paths...) }

func touching(kind string, paths ...string) string {
	var locations []string
	for _, path := range paths {
		locations = append(locations, fmt.Sprintf(`{"path":%s}`, quoted(path)))
	}
	return fmt.Sprintf(`"kind":%q,"locations":[%s]`, kind, strings.Join(locations, ","))
}

func runs(line string) string {
	return fmt.Sprintf(`"kind":"execute","rawInput":{"command":%s}`, quoted(line))
}

// nested is a value inside lists.
func nested(lists int, value string) string {
	return strings.Repeat("[", lists) + value + strings.Repeat("]", lists)
}

func diff(path string) string {
	return fmt.Sprintf(`"kind":"edit","content":[{"type":"diff","path":%s,"newText":""}]`, quoted(path))
}

const (
	inProject   = `{"effect":"allow","kind":["read","edit"],"path":["/proj/**"]}`
	gitAndGo    = `{"effect":"allow","command":["git status","git log **","go test **","head **","ls **","echo **"]}`
	noSecrets   = `{"effect":"reject","path":["**/.env","**/*.pem"]}`
	noRemoval   = `{"effect":"reject","command":["rm **"]}`
	askForEtc   = `{"effect":"ask","path":["/etc/**"]}`
	gitInLogs   = `{"effect":"allow","command":["git **"],"path":["/proj/logs/**"]}`
	allCommands = `{"effect":"allow","command":["**"]}`
)

// Each case is the rules, what an agent wants, and what is decided.
var cases = []struct {
	name  string
	rules string
	call  string
	want  policy.Effect
}{
	{"no rule", ``, reads("/proj/a"), policy.Ask},
	{"a file in the folder", inProject, reads("/proj/a"), policy.Allow},
	{"a file deep in the folder", inProject, edits("/proj/a/b/c.go"), policy.Allow},
	{"the folder itself", inProject, reads("/proj"), policy.Allow},
	{"a folder whose name begins in the same way", inProject, reads("/project/a"), policy.Ask},
	{"all locations in the folder", inProject, reads("/proj/a", "/proj/b"), policy.Allow},
	{"one location outside", inProject, reads("/proj/a", "/etc/passwd"), policy.Ask},
	{"another kind", inProject, touching("delete", "/proj/a"), policy.Ask},
	{"no kind", inProject, `"locations":[{"path":"/proj/a"}]`, policy.Ask},
	{"an unknown kind", inProject, touching("frobnicate", "/proj/a"), policy.Ask},
	{"an unknown kind, and a rule for all kinds", `{"effect":"allow","path":["**"]}`, touching("frobnicate", "/proj/a"), policy.Ask},
	{"no file", inProject, `"kind":"read"`, policy.Ask},
	{"no file, and a rule for the kind", `{"effect":"allow","kind":["read"]}`, `"kind":"read"`, policy.Ask},
	{"a rule for the kind says nothing of paths", `{"effect":"allow","kind":["read"]}`, reads("/proj/a"), policy.Ask},
	{"a kind without files", `{"effect":"allow","kind":["think"]}`, `"kind":"think"`, policy.Allow},
	{"a kind that another rule allows", `{"effect":"allow","kind":["think"]}`, `"kind":"fetch"`, policy.Ask},
	{"a search without files", `{"effect":"allow","kind":["search"]}`, `"kind":"search","rawInput":{"query":"x"}`, policy.Allow},
	{"a diff in the folder", inProject, diff("/proj/a"), policy.Allow},
	{"a diff outside", inProject, diff("/etc/passwd"), policy.Ask},
	{"a diff outside, with a location inside", inProject, edits("/proj/a") + `,"content":[{"type":"diff","path":"/etc/passwd","newText":""}]`, policy.Ask},
	{"content of an unknown kind", inProject, edits("/proj/a") + `,"content":[{"type":"patch","path":"/etc/passwd"}]`, policy.Ask},
	{"content of a known kind", inProject, edits("/proj/a") + `,"content":[{"type":"content","content":{"type":"text","text":"x"}}]`, policy.Allow},
	{"up and out", inProject, reads("/proj/../etc/passwd"), policy.Ask},
	{"up and in again", inProject, reads("/proj/a/../b"), policy.Ask},
	{"dots and double slashes", inProject, reads("/proj//./a/"), policy.Allow},
	{"a relative location", inProject, reads("a"), policy.Ask},
	{"an empty path", inProject, reads(""), policy.Ask},
	{"a NUL", inProject, reads("/proj/a\x00b"), policy.Ask},
	{"a backslash", inProject, reads(`/proj/a\..\..\b`), policy.Ask},
	{"another case of the folder", inProject, reads("/Proj/a"), policy.Ask},
	{"a path in the input", inProject, `"kind":"read","rawInput":{"file_path":"/proj/a"}`, policy.Allow},
	{"a path in the input outside", inProject, reads("/proj/a") + `,"rawInput":{"file_path":"/etc/passwd"}`, policy.Ask},
	{"a relative path in the input", inProject, `"kind":"read","rawInput":{"path":"a/b"}`, policy.Allow},
	{"a path in the input that tools take for one in the home", inProject, `"kind":"read","rawInput":{"path":"~/.ssh/id_rsa"}`, policy.Ask},
	{"the home of another user", inProject, `"kind":"read","rawInput":{"path":"~root/a"}`, policy.Ask},
	{"an address in the input that tools take for a path", inProject, `"kind":"read","rawInput":{"path":"file:///etc/passwd"}`, policy.Ask},
	{"a refused path of the home in the input", inProject + "\n" + `{"effect":"reject","path":["~/.ssh/**"]}`, `"kind":"read","rawInput":{"path":"~/.ssh/id_rsa"}`, policy.Ask},
	{"a list of arguments, and more arguments", gitAndGo, `"kind":"execute","rawInput":{"command":["git","status"],"args":["--output=x"]}`, policy.Ask},
	{"a list of arguments, and no more", gitAndGo, `"kind":"execute","rawInput":{"command":["git","status"],"args":[]}`, policy.Allow},
	{"an extended pattern with a command in it", gitAndGo, runs("echo @($(touch /tmp/x))"), policy.Ask},
	{"a qualifier of zsh that runs a command", gitAndGo, runs("ls *(e:'touch /tmp/x':)"), policy.Ask},
	{"a relative path in the input that leads out", inProject, `"kind":"read","rawInput":{"path":"../b"}`, policy.Ask},
	{"several paths in the input", inProject, `"kind":"read","rawInput":{"paths":["/proj/a","/b"]}`, policy.Ask},
	{"a path that is no text", inProject, reads("/proj/a") + `,"rawInput":{"path":{"a":1}}`, policy.Ask},
	{"a path that is there twice", inProject, `"kind":"read","rawInput":{"path":"/etc/a","path":"/proj/a"}`, policy.Ask},
	{"a target in the input outside", `{"effect":"allow","kind":["move"],"path":["/proj/**"]}`, touching("move", "/proj/a") + `,"rawInput":{"destination":"/etc/a"}`, policy.Ask},
	{"text that looks like a path", inProject, edits("/proj/a") + `,"rawInput":{"new_string":"/* text */"}`, policy.Allow},
	{"a path and a command, and a rule for paths", inProject, reads("/proj/a") + `,"rawInput":{"command":"cat /proj/a"}`, policy.Ask},
	{"a pattern relative to the working directory", `{"effect":"allow","kind":["read"],"path":["src/*.go"]}`, reads("/proj/src/a.go"), policy.Allow},
	{"a star is no slash", `{"effect":"allow","kind":["read"],"path":["src/*.go"]}`, reads("/proj/src/a/b.go"), policy.Ask},
	{"a pattern in the home", `{"effect":"allow","kind":["read"],"path":["~/notes/**"]}`, reads("/home/me/notes/a"), policy.Allow},
	{"another home", `{"effect":"allow","kind":["read"],"path":["~/notes/**"]}`, reads("/home/you/notes/a"), policy.Ask},
	{"anything", `{"effect":"allow","path":["**"]}`, edits("/a/b", `C:\x\y`), policy.Allow},
	{"alternatives", `{"effect":"allow","path":["/proj/**/*.{go,md}"]}`, reads("/proj/a/b.md"), policy.Allow},
	{"no alternative", `{"effect":"allow","path":["/proj/**/*.{go,md}"]}`, reads("/proj/a/b.sh"), policy.Ask},
	{"a drive", `{"effect":"allow","path":["C:/proj/**"]}`, reads(`c:\proj\a`), policy.Allow},
	{"a drive, up and out", `{"effect":"allow","path":["C:/proj/**"]}`, reads(`C:\proj\..\a`), policy.Ask},
	{"a stream of a file", `{"effect":"allow","path":["C:/proj/**"]}`, reads(`C:\proj\a:b`), policy.Ask},
	{"a short name", `{"effect":"allow","path":["C:/proj/**"]}`, reads(`C:\proj\SECRET~1`), policy.Ask},
	{"a network path", `{"effect":"allow","path":["**"]}`, reads(`\\server\share\a`), policy.Ask},

	{"rejected beats allowed", inProject + "\n" + noSecrets, reads("/proj/.env"), policy.Reject},
	{"rejected beats allowed in the other order", noSecrets + "\n" + inProject, reads("/proj/.env"), policy.Reject},
	{"one of several is rejected", inProject + "\n" + noSecrets, reads("/proj/a", "/proj/x/key.pem"), policy.Reject},
	{"rejected in another case", inProject + "\n" + noSecrets, reads("/proj/.ENV"), policy.Reject},
	{"rejected behind dots", inProject + "\n" + noSecrets, reads("/proj/x/../.env"), policy.Reject},
	{"what is not rejected is allowed", inProject + "\n" + noSecrets, reads("/proj/a"), policy.Allow},
	{"what may be rejected is asked about", inProject + "\n" + noSecrets, touching("read", "/proj/a", ""), policy.Ask},
	{"a diff is rejected", noSecrets, diff("/x/.env"), policy.Reject},
	{"rejected beats asked", askForEtc + "\n" + noSecrets, reads("/etc/a.pem"), policy.Reject},
	{"asked beats allowed", `{"effect":"allow","path":["**"]}` + "\n" + askForEtc, reads("/etc/passwd"), policy.Ask},
	{"asked about nothing else", `{"effect":"allow","path":["**"]}` + "\n" + askForEtc, reads("/usr/a"), policy.Allow},
	{"an argument is a rejected path", allCommands + "\n" + noSecrets, runs("cat .env"), policy.Reject},
	{"an argument after = is a rejected path", allCommands + "\n" + noSecrets, runs("cat --file=/x/.env"), policy.Reject},
	{"an argument that is not known may be a rejected path", allCommands + "\n" + noSecrets, runs("cat $F"), policy.Ask},

	{"a command", gitAndGo, runs("git status"), policy.Allow},
	{"a command with more arguments", gitAndGo, runs("git status -s"), policy.Ask},
	{"any arguments", gitAndGo, runs("git log --oneline -n 3"), policy.Allow},
	{"no arguments", gitAndGo, runs("git log"), policy.Allow},
	{"a prefix of a word", gitAndGo, runs("git logs"), policy.Ask},
	{"another command", gitAndGo, runs("rm -rf /"), policy.Ask},
	{"a list", gitAndGo, runs("git status; git log && go test ./..."), policy.Allow},
	{"a list with another command", gitAndGo, runs("git status; rm -rf /"), policy.Ask},
	{"&& with another command", gitAndGo, runs("git status && rm x"), policy.Ask},
	{"|| with another command", gitAndGo, runs("git status || rm x"), policy.Ask},
	{"a pipe", gitAndGo, runs("git log | head -3"), policy.Allow},
	{"a pipe to another command", gitAndGo, runs("git log | sh"), policy.Ask},
	{"a second line", gitAndGo, runs("git status\nrm x"), policy.Ask},
	{"in the background", gitAndGo, runs("git status & rm x"), policy.Ask},
	{"a group", gitAndGo, runs("( git status; rm x )"), policy.Ask},
	{"a group of allowed commands", gitAndGo, runs("{ git status; git log; }"), policy.Allow},
	{"a substitution", gitAndGo, runs("echo $(rm x)"), policy.Ask},
	{"a substitution in quotes", gitAndGo, runs(`echo "$(rm x)"`), policy.Ask},
	{"backquotes", gitAndGo, runs("echo `rm x`"), policy.Ask},
	{"a substitution of an allowed command", gitAndGo, runs("echo $(git status)"), policy.Allow},
	{"a substitution in place of a word", gitAndGo, runs("git $(echo status)"), policy.Ask},
	{"a process substitution", gitAndGo, runs("head <(rm x)"), policy.Ask},
	{"a variable as an argument", gitAndGo, runs("echo $HOME"), policy.Allow},
	{"a variable as a command", allCommands, runs("$EDITOR x"), policy.Ask},
	{"an expansion that runs a command", gitAndGo, runs("echo ${X@P}"), policy.Ask},
	{"arithmetic", gitAndGo, runs("echo $((x))"), policy.Ask},
	{"a redirection", gitAndGo, runs("git log > /etc/passwd"), policy.Ask},
	{"a relative redirection", gitInLogs, runs("git log > x"), policy.Ask},
	{"a redirection to an allowed file", gitInLogs, runs("git log > /proj/logs/x"), policy.Allow},
	{"a redirection to another file", gitInLogs, runs("git log >> /proj/x"), policy.Ask},
	{"a redirection to nothing", gitAndGo, runs("git log 2>&1 >/dev/null"), policy.Allow},
	{"a redirection of unknown files", gitInLogs, runs("git log > /proj/logs/$X"), policy.Ask},
	{"a redirection without a command", gitInLogs, runs("> /proj/logs/x"), policy.Ask},
	{"a here-document", gitAndGo, runs("head <<E\n$(rm x)\nE\n"), policy.Ask},
	{"a variable for a command", gitAndGo, runs("GIT_SSH_COMMAND='rm x' git status"), policy.Ask},
	{"a variable", gitAndGo, runs("PATH=/tmp; git status"), policy.Ask},
	{"a function", gitAndGo, runs("git() { rm x; }; git status"), policy.Ask},
	{"a loop", gitAndGo, runs("while true; do git status; done"), policy.Ask},
	{"no line of a shell", gitAndGo, runs("git status )"), policy.Ask},
	{"open quotes", gitAndGo, runs("git log 'x"), policy.Ask},
	{"quotes", gitAndGo, runs(`"git" 'status'`), policy.Allow},
	{"a semicolon in quotes", gitAndGo, runs(`git log "a; rm x"`), policy.Allow},
	{"a name with a backslash", gitAndGo, runs(`g\it status`), policy.Allow},
	{"ANSI quotes", gitAndGo, runs(`$'git' status`), policy.Ask},
	{"a wildcard", gitAndGo, runs("ls *.go"), policy.Allow},
	{"a wildcard in place of a word", gitAndGo, runs("git stat*"), policy.Ask},
	{"braces in place of a word", gitAndGo, runs("{git,x} status"), policy.Ask},
	{"a comment", gitAndGo, runs("git status # rm x"), policy.Allow},
	{"a carriage return", gitAndGo, runs("git status\rrm x"), policy.Ask},
	{"an empty line", allCommands, runs(""), policy.Ask},
	{"only a comment", allCommands, runs("# x"), policy.Ask},
	{"no command", allCommands, `"kind":"execute"`, policy.Ask},
	{"a command that is only in the title", gitAndGo, `"kind":"execute","title":"git status"`, policy.Ask},
	{"a command that is a number", allCommands, `"kind":"execute","rawInput":{"command":1}`, policy.Ask},
	{"an input that is text", allCommands, `"kind":"execute","rawInput":"git status"`, policy.Ask},
	{"arguments", gitAndGo, `"kind":"execute","rawInput":{"command":["git","status"]}`, policy.Allow},
	{"arguments that a shell would read", gitAndGo, `"kind":"execute","rawInput":{"command":["git","log","$(rm x)"]}`, policy.Allow},
	{"arguments with a shell's line", gitAndGo, `"kind":"execute","rawInput":{"command":["bash","-lc","git status; rm x"]}`, policy.Ask},
	{"arguments with an allowed line", gitAndGo, `"kind":"execute","rawInput":{"command":["bash","-lc","git status"]}`, policy.Allow},
	{"a command and args", gitAndGo, `"kind":"execute","rawInput":{"command":"git","args":["status"]}`, policy.Allow},
	{"a line and args", allCommands, `"kind":"execute","rawInput":{"command":"git; rm","args":["x"]}`, policy.Ask},
	{"a command that is there twice", gitAndGo, `"kind":"execute","rawInput":{"command":"rm x","command":"git status"}`, policy.Ask},
	{"a shell among the arguments is rejected", gitAndGo + "\n" + `{"effect":"reject","command":["bash **"]}`, `"kind":"execute","rawInput":{"command":["bash","-c","git status"]}`, policy.Reject},
	{"variables beside the command", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","env":{"PATH":"/tmp"}}`, policy.Ask},
	{"no variables beside the command", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","env":{}}`, policy.Allow},
	{"another shell", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","shell":"fish"}`, policy.Ask},
	{"two commands", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","cmd":"rm x"}`, policy.Ask},
	{"a folder to run in", gitAndGo, runs("git status") + `,"locations":[{"path":"/etc"}]`, policy.Ask},
	{"a folder to run in, allowed", gitInLogs, runs("git status") + `,"locations":[{"path":"/proj/logs"}]`, policy.Allow},
	{"a line to the letter", `{"effect":"allow","line":["for x in *; do echo $x; done"]}`, runs("for x in *; do echo $x; done"), policy.Allow},
	{"a line but for a blank", `{"effect":"allow","line":["for x in *; do echo $x; done"]}`, runs("for x in * ; do echo $x; done"), policy.Ask},
	{"a rejected command", allCommands + "\n" + noRemoval, runs("rm x"), policy.Reject},
	{"a rejected command in a list", allCommands + "\n" + noRemoval, runs("ls; rm x"), policy.Reject},
	{"a rejected command in a loop", allCommands + "\n" + noRemoval, runs("for x in a; do rm $x; done"), policy.Reject},
	{"a rejected command in a substitution", allCommands + "\n" + noRemoval, runs("echo $(rm x)"), policy.Reject},
	{"a rejected command by its path", allCommands + "\n" + noRemoval, runs("/bin/rm x"), policy.Reject},
	{"a rejected command in capitals", allCommands + "\n" + noRemoval, runs("RM x"), policy.Reject},
	{"what runs a rejected command", allCommands + "\n" + noRemoval, runs("sudo -u x rm y"), policy.Ask},
	{"what may run a rejected command", allCommands + "\n" + noRemoval, runs("bash x.sh"), policy.Ask},
	{"what is not known may be a rejected command", allCommands + "\n" + noRemoval, runs("env $X y"), policy.Ask},
	{"what only sounds like a rejected command", allCommands + "\n" + noRemoval, runs("git rm x"), policy.Allow},

	{"a wildcard in the input", inProject + "\n" + noSecrets, `"kind":"read","rawInput":{"paths":["/proj/**"]}`, policy.Ask},
	{"a wildcard in the input, and a location of the same name", inProject, reads("/proj/**") + `,"rawInput":{"paths":["/proj/**"]}`, policy.Ask},
	{"a wildcard in a location is a name", inProject, reads("/proj/[id].ts"), policy.Allow},
	{"a question mark in the input", inProject, `"kind":"read","rawInput":{"path":"/proj/.en?"}`, policy.Ask},
	{"brackets in the input", inProject, `"kind":"read","rawInput":{"path":".en[v]"}`, policy.Ask},
	{"braces in the input", inProject, `"kind":"read","rawInput":{"path":"{a,.env}"}`, policy.Ask},
	{"an extended pattern in the input", inProject, `"kind":"read","rawInput":{"path":"/proj/@(.env)"}`, policy.Ask},
	{"all but a name in the input", inProject, `"kind":"read","rawInput":{"path":"!a"}`, policy.Ask},
	{"a variable in the input", inProject, `"kind":"read","rawInput":{"path":"$HOME/.ssh/id"}`, policy.Ask},
	{"a variable deep in a path of the input", inProject, `"kind":"read","rawInput":{"path":"/proj/${X}/id"}`, policy.Ask},
	{"a variable of Windows in the input", `{"effect":"allow","path":["**"]}`, `"kind":"read","rawInput":{"path":"%USERPROFILE%"}`, policy.Ask},
	{"a percent sign in the input", inProject, `"kind":"read","rawInput":{"path":"100%"}`, policy.Allow},
	{"an address without slashes in the input", inProject, `"kind":"read","rawInput":{"path":"file:/etc/passwd"}`, policy.Ask},
	{"a scheme with other characters in the input", inProject, `"kind":"read","rawInput":{"path":"a+b-c.1:x"}`, policy.Ask},
	{"a colon that ends no scheme in the input", inProject, `"kind":"read","rawInput":{"path":"a/b:c"}`, policy.Allow},
	{"a drive in the input", `{"effect":"allow","path":["C:/proj/**"]}`, `"kind":"read","rawInput":{"path":"C:/proj/a"}`, policy.Allow},
	{"a path in a list in the input outside", inProject, edits("/proj/a") + `,"rawInput":{"edits":[{"path":"/etc/passwd"}]}`, policy.Ask},
	{"a path in a list in the input", inProject, edits("/proj/a") + `,"rawInput":{"edits":[{"path":"/proj/b"}]}`, policy.Allow},
	{"a path in an object in the input outside", inProject, edits("/proj/a") + `,"rawInput":{"x":{"y":{"file_path":"/etc/passwd"}}}`, policy.Ask},
	{"a path in an input that is a list", inProject, edits("/proj/a") + `,"rawInput":[{"path":"/etc/passwd"}]`, policy.Ask},
	{"a path deep in the input is rejected", inProject + "\n" + noSecrets, edits("/proj/a") + `,"rawInput":{"files":[{"path":".env"}]}`, policy.Reject},
	{"a path deep in the input that is there twice", inProject, edits("/proj/a") + `,"rawInput":{"x":{"path":"/proj/a","path":"/proj/b"}}`, policy.Ask},
	{"a path as deep in the input as is read", inProject, edits("/proj/a") + `,"rawInput":` + nested(31, `{"path":"/proj/b"}`), policy.Allow},
	{"what is too deep in the input to be read", inProject, edits("/proj/a") + `,"rawInput":` + nested(32, `{"path":"/proj/b"}`), policy.Ask},
	{"a command in a list in the input", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","steps":[{"command":"rm x"}]}`, policy.Ask},
	{"a path that is only deep in the input", inProject, `"kind":"edit","rawInput":{"edits":[{"path":"/proj/b"}]}`, policy.Ask},
	{"a path that is only deep in the input of a tool", `{"effect":"allow","tool":["x"],"path":["/proj/**"]}`, `"kind":"other","name":"x","rawInput":{"edits":[{"path":"/proj/b"}]}`, policy.Ask},
	{"a command that is only deep in the input", gitAndGo, `"kind":"execute","rawInput":{"steps":[{"command":"git status"}]}`, policy.Ask},
	{"an allowed command in a list in the input", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","steps":[{"command":"git status"},{"cmd":["git","log"]}]}`, policy.Allow},
	{"a command in a list in the input is rejected", allCommands + "\n" + noRemoval, `"kind":"execute","rawInput":{"steps":[{"command":"rm x"}]}`, policy.Reject},
	{"a command deep in the input of a tool for files", inProject, reads("/proj/a") + `,"rawInput":{"x":{"command":"rm x"}}`, policy.Ask},
	{"variables not beside the command", gitAndGo, `"kind":"execute","rawInput":{"command":"git status","x":{"env":{"PATH":"/tmp"}}}`, policy.Ask},
	{"args not beside the command", gitAndGo, `"kind":"execute","rawInput":{"command":"git log","x":{"args":["--output=x"]}}`, policy.Ask},
	{"too many commands", gitAndGo, `"kind":"execute","rawInput":{"x":[` + strings.Repeat(`{"command":"git log"},`, 100) + `{"command":"rm x"}]}`, policy.Ask},

	{"env with a line", allCommands, runs("env -S 'rm x'"), policy.Ask},
	{"env with a line, and a rejected command", `{"effect":"allow","line":["env -S 'rm x'"]}` + "\n" + noRemoval, runs("env -S 'rm x'"), policy.Ask},
	{"env with a line, to the letter", `{"effect":"allow","line":["env -S 'rm x'"]}`, runs("env -S 'rm x'"), policy.Allow},
	{"env with a line, and a rejected path", `{"effect":"allow","line":["env -S 'cat .env'"]}` + "\n" + noSecrets, runs("env -S 'cat .env'"), policy.Ask},
	{"env with a line by a long option", allCommands, runs("env --split-string='rm x'"), policy.Ask},
	{"env with a line by a shortened option", allCommands, runs("env --sp 'rm x'"), policy.Ask},
	{"env with a line among other options", allCommands, runs("/usr/bin/env -u X -vS'rm x'"), policy.Ask},
	{"env with options that are not known", allCommands, runs("env $X ls"), policy.Ask},
	{"env with a line, of sudo", allCommands, runs("sudo -u x env -S 'rm x'"), policy.Ask},
	{"env with a line, in arguments", allCommands, `"kind":"execute","rawInput":{"command":["env","-S","rm x"]}`, policy.Ask},
	{"env with a command", allCommands, runs("env -u S A=b git log -S x"), policy.Allow},
	{"sudo with a shell", allCommands, runs("sudo -u x -s 'rm x'"), policy.Ask},
	{"sudo with a command", allCommands, runs("sudo -u is ls -is"), policy.Allow},
	{"doas with a shell", allCommands, runs("doas -s"), policy.Ask},
	{"flock with a line", allCommands, runs("flock /tmp/x -c 'rm x'"), policy.Ask},
	{"flock with a command", allCommands, runs("flock -w 3 /tmp/x git -c x"), policy.Allow},
	{"xargs with a command that it reads", allCommands, runs("xargs -I% % x"), policy.Ask},
	{"xargs with a command", allCommands, runs("xargs -0 -n 1 grep -i x"), policy.Allow},
	{"find with a command that it finds", allCommands, runs(`find . -exec {} x \;`), policy.Ask},
	{"find with a command", allCommands, runs(`find . -exec ls '{}' \;`), policy.Allow},
	{"strace with a line", allCommands, runs("strace -o '|rm x' ls"), policy.Ask},
	{"watch with a line", allCommands, runs("watch 'rm x'"), policy.Ask},
	{"parallel with a line", allCommands, runs("parallel ::: 'rm x'"), policy.Ask},
	{"env with too many words", allCommands, runs("env ls" + strings.Repeat(" a", 1000)), policy.Ask},
	{"a subscript of zsh", gitAndGo, runs("echo $x['$(rm x)']"), policy.Ask},
	{"a subscript of zsh in a word", gitAndGo, runs("echo a$x[1]"), policy.Ask},
	{"a subscript of zsh in quotes", gitAndGo, runs(`echo "$x[\$(rm x)]"`), policy.Ask},
	{"a subscript of zsh after braces", gitAndGo, runs("echo ${x}['$(rm x)']"), policy.Ask},
	{"a subscript of zsh on the next line", gitAndGo, runs("echo $x\\\n['$(rm x)']"), policy.Ask},
	{"a subscript of a variable that only zsh knows", gitAndGo, runs("echo $+x['$(rm x)']"), policy.Ask},
	{"a subscript that is none", gitAndGo, runs(`echo $x \$y[1] '$z[1]' $x'[1]'`), policy.Allow},

	{"the agent", `{"effect":"allow","agent":["A"],"kind":["think"]}`, `"kind":"think"`, policy.Allow},
	{"another agent", `{"effect":"allow","agent":["B*"],"kind":["think"]}`, `"kind":"think"`, policy.Ask},
	{"the name of a tool", `{"effect":"allow","tool":["mcp__x__*"]}`, `"kind":"other","name":"mcp__x__get"`, policy.Allow},
	{"the name of another tool", `{"effect":"allow","tool":["mcp__x__*"]}`, `"kind":"other","name":"mcp__y__get"`, policy.Ask},
	{"a tool without a name", `{"effect":"allow","tool":["*"]}`, `"kind":"other"`, policy.Ask},
	{"a tool without a name may be a rejected one", `{"effect":"allow","kind":["other"]}` + "\n" + `{"effect":"reject","tool":["x"]}`, `"kind":"other"`, policy.Ask},
	{"the working directory", `{"effect":"allow","cwd":["/proj/**"],"command":["make"]}`, runs("make"), policy.Allow},
	{"another working directory", `{"effect":"allow","cwd":["/other"],"command":["make"]}`, runs("make"), policy.Ask},
	{"a rejected kind", `{"effect":"reject","kind":["delete"]}`, touching("delete", "/a"), policy.Reject},
	{"a kind that may be a rejected one", `{"effect":"reject","kind":["delete"]}`, `"locations":[{"path":"/a"}]`, policy.Ask},
}

func TestCases(t *testing.T) {
	t.Logf("%d cases", len(cases))
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.name] {
			t.Errorf("two cases are called %q", c.name)
		}
		names[c.name] = true
		d, err := newPolicy(t, c.rules).Explain(request(t, c.call))
		if err != nil {
			t.Fatal(err)
		}
		if d.Effect != c.want {
			t.Errorf("%s: want %s, got %s", c.name, c.want, d)
		}
		if d.Why == "" || len(d.Verdicts) != strings.Count(c.rules, `"effect"`) {
			t.Errorf("%s: nothing explains %s", c.name, d)
		}
		// The order of rules means nothing.
		rules := mustParse(t, c.rules)
		for i := range len(rules) / 2 {
			rules[i], rules[len(rules)-1-i] = rules[len(rules)-1-i], rules[i]
		}
		p, err := policy.New(rules, &policy.Options{Home: "/home/me", POSIXShell: true})
		if err != nil {
			t.Fatal(err)
		}
		if turned, err := p.Explain(request(t, c.call)); err != nil || turned.Effect != d.Effect {
			t.Errorf("%s: in the other order, %s, %v", c.name, turned, err)
		}
	}
}

// What is not known of the agent or the session matches nothing that allows.
func TestUnknownSession(t *testing.T) {
	p := newPolicy(t, `{"effect":"allow","agent":["*"],"kind":["think"]}
		{"effect":"allow","path":["src/**"],"kind":["read"]}
		{"effect":"allow","cwd":["**"],"kind":["fetch"]}`)
	for _, call := range []string{`"kind":"think"`, reads("/proj/src/a"), `"kind":"fetch"`} {
		req := request(t, call)
		if d, err := p.Explain(req); err != nil || d.Effect != policy.Allow {
			t.Errorf("%s: %s, %v", call, d, err)
		}
		req.Agent, req.Cwd = "", ""
		if d, err := p.Explain(req); err != nil || d.Effect != policy.Ask {
			t.Errorf("%s, of a session that is not known: %s, %v", call, d, err)
		}
	}
}

var _ acp.ToolKind
