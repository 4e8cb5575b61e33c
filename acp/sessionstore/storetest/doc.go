// Package storetest has tests that every implementation of sessionstore.Store must pass. It
// does not measure speed.
//
//	func TestStore(t *testing.T) { storetest.Run(t, open) }
//	func TestStoreProcesses(t *testing.T) { storetest.RunProcesses(t, open, nil) }
package storetest
