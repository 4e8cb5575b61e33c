//go:build race

package engine

// CheckLocks has every lock reported from now on.
func CheckLocks(hook func(rank int, taken bool)) {
	lockHook = func(r rank, taken bool) { hook(int(r), taken) }
}
