// Package config is the user's configuration: settings, which are flags, variables of the environment and keys of a file
// at once, and the user's own agents.
//
// [Table] is the one list of settings. Flags, variables, keys, help and docs/config.md are made of it. A command gets its
// settings from [Bind]. What is said first here counts: flag, variable, file, default.
//
// The file is read strictly: a key that nobody knows is an error with its line and column.
package config
