package main

// ttyName is the path of the process's terminal.
const ttyName = "CONIN$"
