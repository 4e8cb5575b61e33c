// Package policy decides about requests for permission by rules, remembers what the user decided for always, and explains
// every decision. It is no sandbox and stops no agent: an agent asks or does not, tells what it wants or something else, and
// what it does after the answer is its own. Rules spare the user questions about what an honest agent wants to do.
//
//	rules, err := policy.ReadFile("rules.json")
//	p, err := policy.New(rules, nil)
//	handlers.RequestPermission = policy.Handler(p, askTheUser, &policy.HandlerOptions[*acp.ClientSession]{
//		Cwd:    func(*acp.ClientSession) string { return dir },
//		Known:  sessions.ToolCall, // of view.Sessions: a request may carry a part of the call only
//		Memory: policy.NewFile(path),
//	})
//
// # What is decided
//
// A rule that rejects decides before one that asks, and that before one that allows; the order of rules means nothing. What
// no rule matches is asked about. [Policy.Explain] is the dry run: it says what each rule says, and why.
//
// # A rule that allows must match the whole
//
// It matches only if it covers everything that the request is about: every path by its Paths, every command by its Commands,
// or a whole line by its Lines, and its Agents, Kinds, Tools and Cwds match what the request says of them. It must say
// something of what the request has: a rule for paths does not allow a request that also has a command. Data that is absent
// matches nothing, nor does a kind that the protocol does not know. Nothing is allowed if the kind is not known, if a tool
// that reads, edits, deletes or moves names no file, or one that executes names no command. What is only named inside lists
// and objects of the input must be covered too, but is not enough.
//
// The paths are those of all locations and diffs, and those in the members of the input that commonly hold them, at any
// depth; these may be relative to the session's working directory. Names of members are compared without case and separators:
// filePath is file_path. A text under another name that looks like a path, as "/a", "~/a" and "../a" do, must be covered too,
// but is not enough. Paths are compared clean. A path with ".." is never allowed: where it leads depends on links. Nor is a
// name that Windows would read in another way, nor one in the input that a tool may expand or read as an address: one that
// begins with "~" or a scheme such as "file:", or that has a variable or a wildcard, even if it is the name of a file; one
// with white space or quotes round it, with characters that are not visible, or that may be a list of paths. Nor is anything
// if lists and objects of the input are too deep inside each other to be read. Links are followed if Options.Resolve says so,
// and both names must be covered then. A rule that allows is compared with upper and lower case; one that asks or rejects
// without, because some file systems make no difference.
//
// The commands are those of the members command, cmd and command_line of the input, at any depth: a line for a POSIX shell,
// or a list of arguments. Every command of a line must be covered, in pipes, lists, groups and $(…) as well. Words that are
// not literal, with variables, substitutions or wildcards, match only the last word "**". The files of redirections are paths
// of the request. Nothing but Lines covers a line that sets variables, has a here-document, a redirection to a relative path,
// arithmetic, an extended pattern such as @(a|b), a variable followed by "[", a function, a loop or a condition; one that
// cannot be parsed, or that makes a command of text. The programs of which that is known: env -S, sudo -s, flock -c, xargs
// -I, find -exec with {}, git with settings that run something, what stores such settings or other names for commands (git
// config, go env -w, gh alias set, npm config set), tar --to-command and its like, awk with system or with a program in a
// file, sed with more than simple scripts, go -exec, ssh -o ProxyCommand, printf -v and other commands of shells that set
// variables or evaluate subscripts, and always watch, parallel, su, runuser, script, pkexec, unshare, nsenter and chroot, which start a shell if
// they are told nothing. A rule sees the names of commands, not what they do: one that allows "make **", "bash **" or "python
// **" allows whatever these are told to run.
//
// # A rule that asks or rejects
//
// It matches if any one path, command or line does. It sees the arguments of commands as paths too, names of commands with
// their folders, and what sudo, env, xargs and some hundred more programs are to run. Where it cannot know whether it
// matches, the user is asked: about lines for another shell, about python -c and its like, and about what names more paths or
// commands than can be compared with all rules, which are 5 million comparisons, about a second. A program that runs others,
// and is not known here, hides them.
package policy
