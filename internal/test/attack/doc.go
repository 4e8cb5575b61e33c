// Package attack has the tests that attack: a hostile agent (package agent below) is set on clients, a hostile client
// (package client) on agents, and hostile schemas on acpgen. All are programs of their own, over pipes. What they
// attack is what people run and copy: the examples, and the smallest client with files and terminals and the smallest
// agent (package victim).
//
// Each attack must leave the one that it is made on within a bound of memory and of time, without a process or a
// goroutine too many, with its secrets, and able to have an ordinary turn. The tests make every attack in small;
// `make attack` makes it in full. Both print a table. They need Linux, whose /proc they read.
package attack
