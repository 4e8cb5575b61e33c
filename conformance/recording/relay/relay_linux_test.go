package relay_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// terminal opens a terminal. Writing to keys types text.
func terminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { keys.Close() })
	control := func(request uintptr, value *int32) {
		conn := must.Get(keys.SyscallConn())(t)
		var errno syscall.Errno
		if err := conn.Control(func(fd uintptr) {
			_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
		}); err != nil || errno != 0 {
			t.Fatal(err, errno)
		}
	}
	var locked, number int32
	control(syscall.TIOCSPTLCK, &locked)
	control(syscall.TIOCGPTN, &number)
	if screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	return keys, screen
}

// A Ctrl-C in a terminal reaches both processes, and the relay does not forward it a second time. A signal to only the
// relay is forwarded.
func TestControlC(t *testing.T) {
	tier.Need(t, tier.Normal)
	keys, screen := terminal(t)
	cmd, _ := through(t, "signals")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	cmd.ExtraFiles = []*os.File{screen}
	pipe := must.Get(cmd.StdoutPipe())(t)
	in := must.Get(cmd.StdinPipe())(t)
	defer in.Close()
	must.Do(t, cmd.Start())
	timer := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	must.Do(t, screen.Close())
	out := bufio.NewReader(pipe)
	expect := func(want string) {
		t.Helper()
		if got, err := out.ReadString('\n'); err != nil || want != "" && got != want+"\n" {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
	expect("") // its process number
	for range 3 {
		must.Get(keys.Write([]byte{3}))(t)
		expect("interrupt")
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGUSR2))
	expect("user defined signal 2")
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
	cmd.Wait()
}
