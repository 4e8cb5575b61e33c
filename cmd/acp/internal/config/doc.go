// Package config is the user's configuration: the user's own agents, and settings, each of which is at once a flag, an
// environment variable and a key of a file.
//
// [Table] is the only list of settings. Flags, variables, keys, help and docs/config.md are generated from it. A
// command gets its settings from [Bind]. The order of precedence is flag, variable, file, default.
//
// The file is read strictly: an unknown key is an error with its line and column.
package config
