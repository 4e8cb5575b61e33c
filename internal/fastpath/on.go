//go:build !acp_nofast

package fastpath

// Enabled reports whether fast paths are used.
const Enabled = true
