// Package attack has tests with attacks: a hostile agent (package agent below) attacks clients, a hostile client
// (package client) attacks agents, and hostile schemas attack acpgen. All are separate programs, connected by pipes.
// The targets are programs that people run and copy: the examples, and the smallest agent and the smallest client with
// files and terminals (package victim).
//
// After each attack, the target must be within its limits of memory and time, must not have leaked a process, a
// goroutine or a secret, and must be able to have an ordinary turn. The tests run a small version of every attack;
// `make attack` runs the full one. Both print a table. They need Linux, because they read /proc.
package attack
