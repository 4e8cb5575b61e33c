// Package faultpipe makes connections that fail by a script, so that tests can show what becomes of a
// connection when its bytes are cut, lost, repeated, held up or mixed with others.
//
// It works on bytes and not on messages, because most faults happen in the middle of a message. So an end
// of a Pipe is a reader and a writer, and rpc.IO makes a transport of it; the code that splits the bytes
// into lines is tested too. The pipe is made of memory and channels: in a bubble of testing/synctest time is
// simulated, and a hang is a deadlock that the bubble reports.
//
// The script, and a seed where it uses one, decide what happens; nothing is left to chance.
package faultpipe
