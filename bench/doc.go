// Package bench measures this library beside others, on the same messages in one run. It is a module of
// its own, so that its users do not depend on their libraries.
//
//	go test -bench . -count 6 | tee new.txt
//	benchstat -row ".name /message" -col /library new.txt
package bench
