package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"gopkg.in/yaml.v3"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// checkArgs parses a command line of acp-fleet, without running it.
func checkArgs(t *testing.T, args []string) {
	t.Helper()
	samples = append(samples, args)
	if len(args) < 2 || args[0] != "acp-fleet" {
		t.Errorf("%q is no command line of acp-fleet", args)
		return
	}
	c, rest, err := newRoot(io.Discard, io.Discard).Find(args[1:])
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil || !c.Runnable() {
		t.Errorf("%q: %v", args, err)
	}
}

// samples are the command lines in deploy, after TestCompose and TestKubernetes.
var samples [][]string

// wrapper makes the agent in a command line of a node another user than the node.
var wrapper = []string{"setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "--no-new-privs"}

// checkSecrets checks that a program gets the password of its own role, and no secret that another one has.
func checkSecrets(t *testing.T, args, secrets []string) {
	t.Helper()
	want := map[string][]string{"node": {"node"}, "gateway": {"gateway", "users"}}[args[1]]
	if slices.Sort(secrets); !slices.Equal(secrets, want) {
		t.Errorf("%s has the secrets %q, want %q", args[1], secrets, want)
	}
	if user := args[slices.Index(args, "--nats-user")+1]; user != "red-"+args[1] {
		t.Errorf("%s is %s in NATS", args[1], user)
	}
	if at := slices.Index(args, "--"); args[1] == "node" && !slices.Equal(args[at+1:], append(slices.Clone(wrapper), "my-agent")) {
		t.Errorf("the agent is %q", args[at+1:])
	}
}

func TestCompose(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "compose.yaml")))(t)
	var file struct {
		Services map[string]struct {
			Image, Restart  string
			Command         []string
			Deploy          struct{ Replicas int }
			StopGracePeriod string `yaml:"stop_grace_period"`
			Volumes, Ports  []string
			Secrets         []struct {
				Source string
				Mode   int
			}
			DependsOn   []string `yaml:"depends_on"`
			EnvFile     []string `yaml:"env_file"`
			User        string
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
		}
		Volumes map[string]any
		Secrets map[string]struct{ File, Environment string }
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	must.Do(t, d.Decode(&file))
	var ran []string
	for name, s := range file.Services {
		var secrets []string
		for _, secret := range s.Secrets {
			from := file.Secrets[secret.Source]
			if from.File == "" && (from.Environment == "" || secret.Mode != 0o400) {
				t.Errorf("%s has the secret %+v", name, secret)
			}
			secrets = append(secrets, strings.TrimPrefix(secret.Source, "red_"))
		}
		if s.Image == "acp-fleet" {
			checkArgs(t, s.Command)
			checkSecrets(t, s.Command, secrets)
			ran = append(ran, s.Command[1])
		} else if !slices.Equal(s.Command, []string{"--config", "/etc/nats/nats.conf"}) || s.Volumes[0] != "./nats.conf:/etc/nats/nats.conf:ro" {
			t.Errorf("%s is run with %q", name, s.Command)
		}
		if slices.Contains(secrets, "node") && (s.User != "root" || !slices.Equal(s.CapDrop, []string{"ALL"})) {
			t.Errorf("the node is the user %q, without %q", s.User, s.CapDrop)
		}
		for _, other := range s.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s depends on %s", name, other)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok && volume != "./nats.conf" {
				t.Errorf("%s has the volume %s", name, volume)
			}
		}
	}
	if slices.Sort(ran); !slices.Equal(ran, []string{"gateway", "gateway", "node"}) {
		t.Errorf("the commands are %q", ran)
	}
}

func TestKubernetes(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes.yaml")))(t)
	type labels struct{ App string }
	type probe struct {
		HTTPGet struct {
			Path string
			Port int
		} `yaml:"httpGet"`
	}
	type object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Replicas        int
			SessionAffinity string               `yaml:"sessionAffinity"`
			Ports           []struct{ Port int } // of a service
			Selector        struct {
				App         string
				MatchLabels labels `yaml:"matchLabels"`
			}
			Template struct {
				Metadata struct{ Labels labels }
				Spec     struct {
					TerminationGracePeriodSeconds int            `yaml:"terminationGracePeriodSeconds"`
					SecurityContext               map[string]int `yaml:"securityContext"`
					ServiceAccountToken           *bool          `yaml:"automountServiceAccountToken"`
					Containers                    []struct {
						SecurityContext struct {
							RunAsUser                *int  `yaml:"runAsUser"`
							AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
							Capabilities             struct{ Drop, Add []string }
						} `yaml:"securityContext"`
						Name, Image    string
						Args           []string
						Env            []map[string]any
						Ports          []map[string]int
						LivenessProbe  probe            `yaml:"livenessProbe"`
						ReadinessProbe probe            `yaml:"readinessProbe"`
						VolumeMounts   []map[string]any `yaml:"volumeMounts"`
					}
					Volumes []struct {
						Name   string
						Secret struct {
							SecretName  string `yaml:"secretName"`
							DefaultMode int    `yaml:"defaultMode"`
						}
					}
				}
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	kinds := map[string]int{}
	apps := map[string]bool{}
	for {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if kinds[o.Kind]++; o.Kind == "Service" {
			if !apps[o.Spec.Selector.App] {
				t.Errorf("the service selects %q", o.Spec.Selector.App)
			}
			continue
		}
		pod := o.Spec.Template
		if pod.Metadata.Labels != o.Spec.Selector.MatchLabels || len(pod.Spec.Containers) != 1 {
			t.Fatalf("deployment %s does not select its pods, or has another number of containers", o.Metadata.Name)
		}
		apps[pod.Metadata.Labels.App] = true
		for _, c := range pod.Spec.Containers {
			checkArgs(t, c.Args)
			var secrets []string
			for _, v := range pod.Spec.Volumes {
				switch v.Name {
				case "agent": // it is the agent's own
				case "gateway":
					secrets = append(secrets, "users")
					fallthrough
				default:
					secrets = append(secrets, strings.TrimPrefix(v.Secret.SecretName, "acp-"))
				}
				if v.Name == "node" && (v.Secret.DefaultMode != 0o400 || pod.Spec.SecurityContext != nil || *c.SecurityContext.RunAsUser != 0) {
					t.Error("the agent can read the secrets of the node")
				}
			}
			checkSecrets(t, c.Args, secrets)
			if pod.Spec.ServiceAccountToken == nil || *pod.Spec.ServiceAccountToken {
				t.Errorf("container %s has a token for Kubernetes", c.Name)
			}
			if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" ||
				c.ReadinessProbe.HTTPGet.Port != c.Ports[0]["containerPort"] {
				t.Errorf("container %s has other probes", c.Name)
			}
		}
	}
	if kinds["Deployment"] != 2 || kinds["Service"] != 1 {
		t.Errorf("the objects are %v", kinds)
	}
}

// The command lines in deploy work with the NATS server in deploy, and nobody gets in without a password.
func TestSamples(t *testing.T) {
	samples = nil
	TestCompose(t)
	TestKubernetes(t)
	dir := t.TempDir()
	for _, team := range []string{"RED", "BLUE"} {
		for _, role := range []string{"OPERATOR", "NODE", "GATEWAY", "AGENT"} {
			t.Setenv(team+"_"+role, "of-"+role)
		}
	}
	secret := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	opts := must.Get(server.ProcessConfigFile(filepath.Join("..", "..", "deploy", "nats.conf")))(t)
	opts.Host, opts.Port, opts.StoreDir, opts.NoSigs, opts.NoLog = "127.0.0.1", -1, t.TempDir(), true, true
	s := must.Get(server.NewServer(opts))(t)
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if _, err := nats.Connect(s.ClientURL()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a connection without a password: %v", err)
	}
	output(t, "nodes", "--nats", s.ClientURL(), "--nats-user", "red-operator", "--nats-token-file", secret("operator", "of-OPERATOR\n")) // creates the fleet
	users := secret("users", "ann of-ANN\n")
	agent := []string{buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor"), "-state", filepath.Join(dir, "state")}
	var url string
	for _, args := range samples {
		args = slices.Clone(args[1:])
		for i, arg := range args {
			switch {
			case arg == "nats://nats:4222":
				args[i] = s.ClientURL()
			case arg == ":8080" || arg == ":8123":
				args[i] = "127.0.0.1:0"
			case arg == "/work":
				args[i] = dir
			case arg == "$(POD_NAME)":
				args[i] = "pod-1"
			case strings.HasSuffix(arg, "/users"):
				args[i] = users
			case args[max(0, i-1)] == "--nats-token-file":
				args[i] = secret(args[0], "of-"+strings.ToUpper(args[0])+"\n")
			}
		}
		if at := slices.Index(args, "--"); at >= 0 {
			args = append(args[:at+1], agent...)
		}
		if said := line(t, start(t, args...)); args[0] == "gateway" {
			url = said
		}
	}
	client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, remote.Dial(url, &remote.DialOptions{
		Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer of-ANN"}}, nil
		},
	}), nil), acp.ClientHandlers{}, nil))(t)
	defer client.Close()
	session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}))(t)
	if _, err := session.Prompt(t.Context(), acp.TextBlock("one")); err != nil {
		t.Error(err)
	}
}

// The agent of the samples cannot read what is its node's: neither files nor the environment.
func TestWrapper(t *testing.T) {
	if _, err := exec.LookPath(wrapper[0]); err != nil || os.Getuid() != 0 {
		t.Skip("not root, or without setpriv")
	}
	dir := t.TempDir()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		must.Do(t, os.Chmod(d, 0o755))
	}
	for name, mode := range map[string]os.FileMode{"own": 0o444, "secret": 0o400} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), mode))
	}
	for path, want := range map[string]bool{
		filepath.Join(dir, "own"): true, filepath.Join(dir, "secret"): false, fmt.Sprintf("/proc/%d/environ", os.Getpid()): false,
	} {
		out, err := exec.CommandContext(t.Context(), wrapper[0], append(slices.Clone(wrapper[1:]), "cat", path)...).CombinedOutput()
		if (err == nil) != want {
			t.Errorf("reading %s: %s, %v", path, out, err)
		}
	}
}
