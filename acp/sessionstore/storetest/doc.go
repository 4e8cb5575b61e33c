// Package storetest has the tests that every implementation of sessionstore.Store must pass, and of sessionstore.StoreOf. It says
// nothing of speed.
//
//	func TestStore(t *testing.T) { storetest.Run(t, open) }
//	func TestStoreProcesses(t *testing.T) { storetest.RunProcesses(t, open, nil) }
package storetest
