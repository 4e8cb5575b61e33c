// Package policy decides about requests for permission by rules, remembers what the user decided for always, and explains
// every decision. It is not a sandbox and stops no agent: an agent asks or does not, tells what it wants or something else, and
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
// or a list of arguments. Every command of a line must be covered, in pipes, lists and groups as well. Nothing but Lines
// covers a line with anything that is not text: variables, substitutions, wildcards, assignments, redirections other than
// 2>&1 and those to /dev/null, here-documents, functions, loops and conditions, nor one that cannot be parsed or has a comment,
// which an interactive zsh runs. A command that changes the directory is not covered among others, unless it is the session's
// own directory. Nor is one that reads from a pipe, unless it only reads or copies, as tee does, or its rule is Unsafe.
//
// A command is covered by words, or because it is known to read only:
//
//   - The words of Commands match to the letter. "*" is one word that the agent may choose. It is no option, assignment or path
//     with ".."; it may be a program's code, where the program takes that: "sh -c *" allows everything.
//   - A last word "**" is any further words, and with most programs a way to run others: git -C, go test -exec, make --eval,
//     tar -I, find -exec. So it needs Unsafe, which says that the rule allows whatever the program can do. [Rule.Warnings] warns
//     of it.
//   - ReadOnly covers the commands that [ReadOnlyCommands] lists, with the options of them that change nothing and run nothing:
//     git log --oneline, but not git log --output. The files that they name must be covered by Paths. They do what the files of
//     the user say that configure them: git runs the pager, the monitor of files and the filters of the repository's
//     configuration, which the agent should not be allowed to write. They may refresh caches, such as Git's index.
//
// No list says which programs are dangerous: what is not covered is asked about.
//
// # A rule that asks or rejects
//
// It matches if any one path, command or line does. In its Commands, "*" is any characters of a word, and "**" needs nothing. It
// sees the arguments of commands, and the files of redirections, as paths too, and names of commands with their folders. If the
// name of a command, or a path, is anywhere in a line that does more than read, it may be run or used there, by sudo, xargs, sh -c
// or a program that nobody has heard of: the user is asked. So git rm is asked about if rm is rejected. The user is asked, too,
// about lines that cannot be read, and about what names more paths or commands than can be compared with all rules, which are 5
// million comparisons, about a second. What a line does not name, a rule does not see: a script, a Makefile or code in another
// language may do what a rule rejects, if another rule allows to run it.
package policy
