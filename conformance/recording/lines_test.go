package recording

import "testing"

// The line of each message is known, even with other lines between the messages, unless there are very many.
func TestLines(t *testing.T) {
	var l Lines
	line := 1
	want := []int{0}
	for number := 1; number <= 3*maxSteps; number++ {
		line += 1 + number%2
		l.Add(line)
		want = append(want, line)
	}
	known := 0
	for number, line := range want {
		switch got := l.Of(number); got {
		case line:
			known++
		case 0:
		default:
			t.Fatalf("message %d: line %d, want %d", number, got, line)
		}
	}
	if known < maxSteps/2 || l.Of(l.Count()) != line || l.Of(l.Count()+1) != 0 || l.Of(-1) != 0 || len(l.steps) > maxSteps {
		t.Errorf("%d lines known, %d steps", known, len(l.steps))
	}
}
