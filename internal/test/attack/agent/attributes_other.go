//go:build !linux

package main

func setAttribute(string, string, string) (ok bool, err error) { return false, nil }

func attribute(string, string) string { return "" }
