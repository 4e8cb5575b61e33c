package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// checkArgs parses a command line of acp-fleet, without running it.
func checkArgs(t *testing.T, args []string) {
	t.Helper()
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

func TestCompose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image, Restart  string
			Command         []string
			Deploy          struct{ Replicas int }
			StopGracePeriod string `yaml:"stop_grace_period"`
			Volumes, Ports  []string
			Secrets         []string
			DependsOn       []string `yaml:"depends_on"`
		}
		Volumes map[string]any
		Secrets map[string]struct{ File string }
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	var ran []string
	for name, s := range file.Services {
		if s.Image == "acp-fleet" {
			checkArgs(t, s.Command)
			ran = append(ran, s.Command[1])
		}
		for _, other := range s.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s depends on %s", name, other)
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok {
				t.Errorf("%s has the volume %s", name, volume)
			}
		}
		for _, secret := range s.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s has the secret %s", name, secret)
			}
		}
	}
	if slices.Sort(ran); !slices.Equal(ran, []string{"gateway", "gateway", "node"}) {
		t.Errorf("the commands are %q", ran)
	}
}

func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
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
					Containers                    []struct {
						Name, Image    string
						Args           []string
						Env            []map[string]any
						Ports          []map[string]int
						LivenessProbe  probe            `yaml:"livenessProbe"`
						ReadinessProbe probe            `yaml:"readinessProbe"`
						VolumeMounts   []map[string]any `yaml:"volumeMounts"`
					}
					Volumes []map[string]any
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
