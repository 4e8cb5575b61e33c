package config

import "github.com/spf13/cobra"

// Nearest returns the names that may have been meant, as cobra suggests commands: those that differ in at most two
// letters, and those that begin with name.
func Nearest(name string, known []string) []string {
	c := cobra.Command{SuggestionsMinimumDistance: 2}
	if len(name) < 3 || len(name) > 64 { // almost every name is near to a short one
		return nil
	}
	for _, k := range known {
		c.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	return c.SuggestionsFor(name)
}
