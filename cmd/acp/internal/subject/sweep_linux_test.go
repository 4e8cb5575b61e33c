package subject

import (
	"bufio"
	"crypto/rand"
	"os"
	"os/exec"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// A sweep ends processes that have left their session, and processes that are just executing another program, and
// returns when they have ended.
func TestSweep(t *testing.T) {
	for name, script := range map[string]string{
		"sleeping":             `setsid sleep 1000 & sleep 1000 & echo`,
		"becoming another one": `for i in 1 2 3 4 5 6 7 8; do setsid sh -c 'exec sh -c "$AGAIN"' & done; echo`,
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				id := mark + "=" + rand.Text()
				cmd := exec.Command("sh", "-c", script)
				cmd.Env = append(os.Environ(), id, `AGAIN=exec sh -c "$AGAIN"`)
				out := must.Get(cmd.StdoutPipe())(t)
				must.Do(t, cmd.Start())
				if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					t.Error(err)
				}
				sweep(id)
				for range 3 {
					if left, _ := carrying(id); len(left) > 0 {
						t.Errorf("%d processes are left", len(left))
						break
					}
				}
				for left, _ := carrying(id); len(left) > 0; left, _ = carrying(id) {
					sweep(id)
				}
				cmd.Wait() // it was killed, or has ended
			}
		})
	}
}
