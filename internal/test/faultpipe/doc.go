// Package faultpipe provides connections that fail according to a script. Tests use them to show what happens to a
// connection when its bytes are cut, lost, repeated, delayed or mixed with others.
//
// It works on bytes, not messages, because most faults happen in the middle of a message. An end of a Pipe is therefore
// a reader and a writer, which rpc.IO converts to a transport, so that the code that splits the bytes into lines is
// tested too. The pipe consists only of memory and channels: in a testing/synctest bubble, time is simulated, and a
// hang is a deadlock that the bubble reports.
//
// The script, with its seed if it uses one, determines everything that happens, so tests are reproducible.
package faultpipe
