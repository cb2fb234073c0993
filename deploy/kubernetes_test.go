package deploy

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// object is the part of a Kubernetes object that the tests use.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Replicas    int
		Selector    yaml.Node
		PodSelector selector `yaml:"podSelector"`
		Egress      []struct{ Ports []struct{ Port int } }
		Ports       []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
	}
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type pod struct {
	EnableServiceLinks            *bool `yaml:"enableServiceLinks"`
	AutomountServiceAccountToken  *bool `yaml:"automountServiceAccountToken"`
	TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
		RunAsUser    int  `yaml:"runAsUser"`
	} `yaml:"securityContext"`
	InitContainers []container `yaml:"initContainers"`
	Containers     []container
	Volumes        []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
		Secret    struct {
			SecretName string `yaml:"secretName"`
		}
	}
}

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	Resources struct{ Requests, Limits map[string]string }

	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// manifests returns all objects by kind and name. The parser rejects duplicate keys in an object.
func manifests(t *testing.T) map[string]object {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	all := make(map[string]object)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(strings.NewReader(string(data)))
		for {
			var o object
			if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(file, err)
			}
			name := o.Kind + "/" + o.Metadata.Name
			if _, there := all[name]; there || o.Metadata.Name == "" || o.APIVersion == "" {
				t.Errorf("%s: %s is duplicated or empty", file, name)
			}
			if o.Kind != "Namespace" && o.Metadata.Namespace != "fermata" {
				t.Errorf("%s is in the namespace %q", name, o.Metadata.Namespace)
			}
			all[name] = o
		}
	}
	return all
}

func has(labels, wanted map[string]string) bool {
	for name, value := range wanted {
		if labels[name] != value {
			return false
		}
	}
	return len(wanted) > 0
}

func TestKubernetes_SettingsAreValid(t *testing.T) {
	all := manifests(t)
	dir := t.TempDir()
	write(t, dir, "store-url", all["Secret/fermata"].StringData["store-url"])
	const secrets = "/run/secrets/fermata"
	file := write(t, dir, "fermata.yaml", strings.ReplaceAll(all["ConfigMap/fermata"].Data["fermata.yaml"], secrets, dir))
	settings := loaded(t, file, imageEnv(t))
	server := all["Deployment/fermata"].Spec.Template.Spec
	if got, want := settings.Store.URL.Reveal(), all["Secret/fermata"].StringData["store-url"]; got != want {
		t.Errorf("in the image the store is %s, and the secret has %s: the image's environment overrides the file", got, want)
	}
	if settings.Store.Migrate {
		t.Error("replicas migrate by themselves, so the job is useless")
	}
	for _, o := range []object{all["Deployment/fermata"], all["Job/fermata-migrate"]} {
		for _, c := range o.Spec.Template.Spec.Containers {
			variables := imageEnv(t)
			for _, v := range c.Env {
				if strings.HasPrefix(v.Name, "FERMATA_") {
					variables[v.Name] = v.Value
				}
			}
			loaded(t, file, variables)
		}
	}
	ports := make(map[string]string)
	for _, p := range server.Containers[0].Ports {
		ports[p.Name] = fmt.Sprint(":", p.ContainerPort)
	}
	if ports["http"] != settings.Listen.Addr || ports["metrics"] != settings.Metrics.Addr {
		t.Errorf("the ports are %v, the server listens on %s and %s", ports, settings.Listen.Addr, settings.Metrics.Addr)
	}
	for _, place := range []string{strings.ReplaceAll(settings.Store.URLFile, dir, secrets), settings.Key.File} {
		if !mounted(server.Containers[0], place) {
			t.Errorf("nothing is mounted at %s", place)
		}
	}
	secret := all["Secret/fermata"].StringData
	for _, name := range []string{filepath.Base(settings.Store.URLFile), "key"} {
		if secret[name] == "" {
			t.Errorf("the secret has no %s, only %v", name, slices.Sorted(maps.Keys(secret)))
		}
	}
	timeout := time.Duration(server.TerminationGracePeriodSeconds-server.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if timeout < settings.Listen.DrainTimeout+stopTimeout {
		t.Errorf("the grace period of %s is too short for a drain of %s", timeout, settings.Listen.DrainTimeout)
	}
}

func mounted(c container, file string) bool {
	for _, m := range c.VolumeMounts {
		if m.MountPath == filepath.Dir(file) {
			return true
		}
	}
	return false
}

// The commands run with the configuration of the manifests, on files and a database of this
// machine.
func TestKubernetes_CommandsAndProbesWork(t *testing.T) {
	all := manifests(t)
	dir := t.TempDir()
	call(t, "key", "make", filepath.Join(dir, "secret-key"))
	write(t, dir, "store-url", database(t)+"\n")
	places := strings.NewReplacer("/run/secrets/fermata/key", filepath.Join(dir, "secret-key"), "/run/secrets/fermata", dir, "/run/fermata", dir, "/etc/fermata", dir,
		`":8080"`, `"127.0.0.1:0"`, `":9464"`, `"off"`)
	write(t, dir, "fermata.yaml", places.Replace(all["ConfigMap/fermata"].Data["fermata.yaml"]))
	words := func(c container) (all []string) {
		for _, word := range slices.Concat(c.Command, c.Args) {
			all = append(all, places.Replace(word))
		}
		return all
	}
	var env []string
	for name, value := range imageEnv(t) {
		env = append(env, name+"="+value)
	}
	// The job has no key: it is not mounted there.
	launch(t, env, words(all["Job/fermata-migrate"].Spec.Template.Spec.Containers[0])...).ends(t)
	server := all["Deployment/fermata"].Spec.Template.Spec
	if copyKey := words(server.InitContainers[0]); copyKey[0] != "install" {
		t.Errorf("the key is copied with %v", copyKey)
	} else {
		run(t, copyKey...)
	}
	started := launch(t, env, words(server.Containers[0])...)
	await(t, started.errs, `"serving"`, started)
	c := server.Containers[0]
	for _, probe := range []string{c.StartupProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path} {
		if code := status(t, started.URL+probe); probe == "" || code != 200 {
			t.Errorf("%q answers %d", probe, code)
		}
	}
}

func TestKubernetes_PartsFitTogether(t *testing.T) {
	all := manifests(t)
	server := all["Deployment/fermata"]
	if server.Spec.Replicas != 3 {
		t.Errorf("%d replicas", server.Spec.Replicas)
	}
	labels := server.Spec.Template.Metadata.Labels
	var own, budget selector
	var service map[string]string
	for name, into := range map[string]any{"Deployment/fermata": &own, "PodDisruptionBudget/fermata": &budget, "Service/fermata": &service} {
		if node := all[name].Spec.Selector; node.Decode(into) != nil {
			t.Errorf("%s selects nothing", name)
		}
	}
	for name, wanted := range map[string]map[string]string{
		"deployment": own.MatchLabels, "budget": budget.MatchLabels, "service": service, "network policy": all["NetworkPolicy/fermata"].Spec.PodSelector.MatchLabels,
	} {
		if !has(labels, wanted) {
			t.Errorf("%s selects %v, and the pods have %v", name, wanted, labels)
		}
	}
	migrates := all["Job/fermata-migrate"]
	if has(migrates.Spec.Template.Metadata.Labels, service) {
		t.Error("the service sends requests to the job")
	}
	for _, port := range all["Service/fermata"].Spec.Ports {
		if !slices.ContainsFunc(server.Spec.Template.Spec.Containers[0].Ports, func(p struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}) bool {
			return p.Name == port.TargetPort
		}) {
			t.Errorf("the service sends to the port %s, which does not exist", port.TargetPort)
		}
	}
	if a, b := server.Spec.Template.Spec.Containers[0].Image, migrates.Spec.Template.Spec.Containers[0].Image; a != b {
		t.Errorf("%s serves after %s migrated", a, b)
	}
}

// The network policy allows the usual ports of everything that the configuration lets the server
// call. Missing traces would go unnoticed.
func TestKubernetes_NetworkPolicyAllowsEgress(t *testing.T) {
	var out []int
	for _, rule := range manifests(t)["NetworkPolicy/fermata"].Spec.Egress {
		for _, p := range rule.Ports {
			out = append(out, p.Port)
		}
	}
	for port, what := range map[int]string{53: "names", 5432: "store.url", 4318: "tracing.endpoint", 443: "webhooks and auth.oidc.issuer"} {
		if !slices.Contains(out, port) {
			t.Errorf("%s: port %d is not among %v", what, port, out)
		}
	}
}

func TestKubernetes_PodsAreRestricted(t *testing.T) {
	all := manifests(t)
	for _, o := range []object{all["Deployment/fermata"], all["Job/fermata-migrate"]} {
		p := o.Spec.Template.Spec
		if p.EnableServiceLinks == nil || *p.EnableServiceLinks {
			t.Errorf("%s: Kubernetes would set FERMATA_PORT and the like", o.Metadata.Name)
		}
		if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken || !p.SecurityContext.RunAsNonRoot || p.SecurityContext.RunAsUser == 0 {
			t.Errorf("%s has more than it needs: %+v", o.Metadata.Name, p)
		}
		for _, c := range slices.Concat(p.InitContainers, p.Containers) {
			s := c.SecurityContext
			if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s has more privileges than it needs: %+v", c.Name, s)
			}
			if c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
				t.Errorf("%s has no memory limit", c.Name)
			}
			if !strings.Contains(c.Image, ":") || strings.HasSuffix(c.Image, ":latest") {
				t.Errorf("%s is not pinned", c.Image)
			}
		}
	}
}
