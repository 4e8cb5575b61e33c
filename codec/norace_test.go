//go:build !race

package codec_test

import "testing"

func skipUnderRace(*testing.T) {}
