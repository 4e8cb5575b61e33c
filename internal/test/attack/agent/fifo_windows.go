package main

func fifo(string) error { return nil }
