// Package faultpipe makes connections that fail by a script, so that tests can show what becomes of a
// connection when its bytes are cut, lost, repeated, held up or mixed with others.
//
// It works on bytes and knows no message, because most faults of a wire fall within a message: a
// transport that is handed whole messages cannot lose half of one. The ends of a Pipe are therefore a
// reader and a writer, and rpc.IO makes a transport of them; what frames the messages is under test
// too. The pipe is memory and channels only: in a bubble of testing/synctest, whatever waits for it
// waits durably, so that a hang is a deadlock that the bubble reports, and time is simulated.
//
// What happens is decided by the script and, where that uses one, by a seed, never by chance.
package faultpipe
