// Package policy answers permission requests by rules, remembers the user's "always" decisions, and explains every
// decision. It is not a sandbox and cannot stop an agent: an agent may not ask at all, may ask for something other than
// what it wants to do, and may do anything after the answer. Rules spare the user questions about what an honest agent
// wants to do.
//
//	rules, err := policy.ReadFile("rules.json")
//	p, err := policy.New(rules, nil)
//	handlers.RequestPermission = policy.Handler(p, askTheUser, &policy.HandlerOptions{
//		Known:  sessions.ToolCall, // of view.Sessions: a request may carry a part of the call only
//		Memory: policy.NewFile(path),
//	})
//
// # What is decided
//
// Rules that reject take precedence over rules that ask, and those over rules that allow; the order of rules does not
// matter. The user is asked about a request that no rule matches. [Policy.Explain] is a dry run: it reports the verdict
// of each rule, and why.
//
// # A rule that allows must match the whole
//
// It matches only if it covers everything that the request is about: every path by its Paths, every command by its
// Commands, or a whole line by its Lines; its Agents, Kinds, Tools and Cwds must match those of the request. It must
// cover every part of the request: a rule for paths does not allow a request that also has a command. Absent data
// matches nothing, nor does a kind that the protocol does not define. Nothing is allowed if the kind is not known, if a
// tool that reads, edits, deletes or moves names no file, or if a tool that executes names no command. Paths and
// commands that are named only inside lists and objects of the input must be covered too, but are not enough.
//
// The paths are those of all locations and diffs, and those in the members of the input that commonly hold paths, at
// any depth; these may be relative to the session's working directory. Names of members are compared ignoring case and
// separators: filePath is file_path. Text in another member that looks like a path, such as "/a", "~/a" and "../a",
// must be covered too, but is not enough. Paths are cleaned before they are compared. A path with ".." is never
// allowed, because where it leads depends on links. Nor is a name that Windows would interpret differently, nor a name
// in the input that a tool may expand or read as an address: one that begins with "~" or a scheme such as "file:", or
// that contains a variable or a wildcard, even if it is the name of a file; one that is surrounded by white space or
// quotes, that contains invisible characters, or that may be a list of paths. Nothing is allowed if lists and objects
// of the input are nested too deeply to be read. If Options.Resolve is set, links are followed, and both names must be
// covered. A rule that allows is case-sensitive; one that asks or rejects ignores case, because some file systems do.
//
// The commands are those of the members command, cmd and command_line of the input, at any depth: a line for a POSIX
// shell, or a list of arguments. Every command of a line must be covered, also in pipes, lists and groups. Only Lines
// covers a line that contains anything other than plain text: variables, substitutions, wildcards, assignments,
// redirections other than 2>&1, > /dev/null and the like (&> is not the same in all shells), here-documents, functions,
// loops and conditions, or a line that cannot be parsed, or that has a comment, which an interactive zsh would run. A
// command that changes the directory is not covered if there are other commands, unless it changes to the session's own
// directory. A command that reads from a pipe is not covered unless it only reads, or copies, as tee does, or its rule
// is Unsafe.
//
// A command is covered by words, or because it is known to only read:
//
//   - The words of Commands match exactly. "*" matches one word that the agent may choose. The word must not be an
//     option, an assignment or a path with "..". With most programs it may be code, or the name of a program: awk,
//     eval, xargs, find -exec, env, sh -c, make, sudo. Therefore it requires Unsafe, except in commands of
//     [ReadOnlyCommands], and of touch, mkdir, rmdir, rm, cp, mv, ln, chmod, tee, printf, jq, sleep, gofmt, of git add,
//     mv, rm, restore, checkout, switch, branch, tag, commit, stash and push origin, of gh pr view, gh issue view and
//     kubectl get, of go build, test, vet, fmt and list, where it may not be a file of Go, and of cargo build, check,
//     clippy and test, with those of their options that run nothing.
//   - A last word "**" matches any further words, which with most programs is a way to run others: git -C, go test
//     -exec, make --eval, tar -I, find -exec. Therefore it requires Unsafe, which means that the rule allows whatever
//     the program can do. [Rule.Warnings] warns of it.
//   - ReadOnly covers the commands that [ReadOnlyCommands] lists, with those of their options that change nothing and
//     run nothing: git log --oneline, but not git log --output. The files that they name must be covered by Paths. They
//     obey the user's configuration files: git runs the pager, the file monitor and the filters of the repository's
//     configuration, which the agent should not be allowed to write. They may refresh caches, such as Git's index.
//
// There is no list of dangerous programs: the user is asked about everything that is not covered.
//
// # A rule that asks or rejects
//
// It matches if any one path, command or line does. In its Commands, "*" matches any characters of a word, and "**"
// does not require Unsafe. It also treats the arguments of commands, and the files of redirections, as paths, and
// recognizes commands that are named with their directories. If the name of a command, or a path, occurs anywhere in a
// line that does more than read, it may be run or used there, by sudo, xargs, sh -c or an unknown program, so the user
// is asked: for example about git rm if rm is rejected. The user is also asked about lines that cannot be parsed, and
// about requests that name more paths or commands than can be compared with all rules, which is 5 million comparisons,
// about a second. Rules only see what a line names: a script, a Makefile or code in another language may do what a rule
// rejects, if another rule allows running it.
package policy
