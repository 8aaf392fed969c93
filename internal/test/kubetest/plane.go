package kubetest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"perflab/internal/test/deploytest"
)

// plane is the control plane of a test binary.
type plane struct {
	dir    string
	url    string // of the API server
	token  string // of the administrator
	certs  *certificates
	family *family
	parts  []*part
	api    *client // as the administrator, who is called kubetest in the fields that it writes

	ctx  context.Context // ends with the plane
	stop context.CancelFunc
	work sync.WaitGroup
}

// part is a process of the control plane.
type part struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// the is the control plane of this test binary: package state, since the tests of a package
// share nothing else.
var the struct {
	once  sync.Once
	plane *plane
	err   error
}

// shared is the control plane, which the first test starts.
func shared(program string) (*plane, error) {
	the.once.Do(func() { the.plane, the.err = startPlane(program) })
	return the.plane, the.err
}

// end ends the control plane if a test has started one.
func end() {
	the.once.Do(func() {})
	if the.plane != nil {
		the.plane.end()
	}
}

// errTaken says that somebody took one of the ports meanwhile.
var errTaken = errors.New("a port of the control plane is taken")

func startPlane(program string) (*plane, error) {
	for try := 0; ; try++ {
		p, err := tryPlane(program)
		if err == nil || try == 2 || !errors.Is(err, errTaken) {
			return p, err
		}
	}
}

func tryPlane(program string) (p *plane, err error) {
	dir, err := os.MkdirTemp("", "kubetest")
	if err != nil {
		return nil, err
	}
	p = &plane{dir: dir, token: newToken()}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if p.family, err = newFamily(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	if p.certs, err = writeCertificates(dir); err != nil {
		return nil, err
	}
	port, err := deploytest.FindPorts(3)
	if err != nil {
		return nil, err
	}
	p.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	if p.api, err = newClient(p); err != nil {
		return nil, err
	}
	if err := p.writeFiles(); err != nil {
		return nil, err
	}
	if err := p.startParts(program, port); err != nil {
		return nil, err
	}
	p.runSets()
	return p, nil
}

// writeFiles writes what the parts read: the administrator's token and kubeconfig.
func (p *plane) writeFiles() error {
	if err := os.WriteFile(p.at("tokens.csv"), []byte(p.token+",admin,1,system:masters\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.at("kubeconfig"), kubeconfig(p.url, p.certs.authority, Admin, p.token, ""), 0o600)
}

func (p *plane) at(name string) string { return filepath.Join(p.dir, name) }

// controllers are those of Kubernetes that a cluster for tests needs. The one that watches over
// nodes is not among them: a node here says itself that it is gone (Node.Fail).
const controllers = "deployment-controller,replicaset-controller,statefulset-controller,job-controller,cronjob-controller,garbage-collector-controller," +
	"namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,resourcequota-controller,endpointslice-controller," +
	"disruption-controller,persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller," +
	"pod-garbage-collector-controller,ttl-after-finished-controller,taint-eviction-controller"

func (p *plane) startParts(program string, port int) error {
	etcd := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	p.run(program, "etcd", p.at("etcd"), etcd, fmt.Sprintf("http://127.0.0.1:%d", port+2))
	p.run(program, "kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file="+p.at("server.crt"), "--tls-private-key-file="+p.at("server.key"), "--token-auth-file="+p.at("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+p.at("sa.pub"), "--service-account-signing-key-file="+p.at("sa.key"),
		"--kubelet-client-certificate="+p.at("client.crt"), "--kubelet-client-key="+p.at("client.key"), "--kubelet-certificate-authority="+p.at("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-timeout=60s", "--service-cluster-ip-range=10.96.0.0/24", "--authorization-mode=RBAC", "--allow-privileged=true",
		// A namespace's pods run on the nodes of its test alone: it has them in an annotation.
		"--enable-admission-plugins=PodNodeSelector",
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false")
	if err := p.await(); err != nil {
		return err
	}
	// The garbage collector looks for new kinds only now and then: this one is there before it.
	if err := p.installSets(); err != nil {
		return err
	}
	p.run(program, "kube-controller-manager", "--kubeconfig="+p.at("kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file="+p.at("sa.key"), "--root-ca-file="+p.at("ca.crt"), "--controllers="+controllers,
		"--kube-api-qps=1000", "--kube-api-burst=1000", "--resource-quota-sync-period=2s")
	p.run(program, "kube-scheduler", "--kubeconfig="+p.at("kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=1000", "--kube-api-burst=1000")
	return nil
}

// run starts a part; that it ended is for await, and for whoever misses it.
func (p *plane) run(program, name string, args ...string) {
	q := &part{name: name, log: p.at(name + ".log"), done: make(chan struct{})}
	p.parts = append(p.parts, q)
	fail := func(err error) {
		_ = os.WriteFile(q.log, []byte(err.Error()), 0o600) // await says that the part has ended
		close(q.done)
	}
	out, err := os.Create(q.log)
	if err != nil {
		fail(err)
		return
	}
	defer out.Close()
	q.cmd = exec.Command(program, append([]string{name}, args...)...)
	q.cmd.Dir, q.cmd.Stdout, q.cmd.Stderr = p.dir, out, out
	q.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "GOGC=200"}
	if err := p.family.start(q.cmd); err != nil {
		fail(fmt.Errorf("start %s: %w", program, err))
		return
	}
	p.work.Go(func() {
		defer close(q.done)
		p.family.wait(q.cmd)
	})
}

// await waits until the API server says that it is ready.
func (p *plane) await() error {
	var ended error
	var last atomic.Value
	ready := eventually(p.ctx, 2*soon, func() bool {
		if ended = p.ended(); ended != nil {
			return true
		}
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		defer cancel()
		text, err := p.api.get(ctx, "/readyz")
		last.Store(fmt.Sprint(err))
		return err == nil && string(text) == "ok"
	})
	if ended == nil && !ready {
		return fmt.Errorf("the API server is not ready in time: %v\n%s", last.Load(), tail(p.at("kube-apiserver.log")))
	}
	return ended
}

// ended is the error of the first part that has ended.
func (p *plane) ended() error {
	for _, q := range p.parts {
		select {
		case <-q.done:
			text := tail(q.log)
			if strings.Contains(text, "address already in use") {
				return fmt.Errorf("%s: %w", q.name, errTaken)
			}
			return fmt.Errorf("%s has ended:\n%s", q.name, text)
		default:
		}
	}
	return nil
}

// end ends all parts, the last first, and removes the directory.
func (p *plane) end() {
	p.stop()
	for i := len(p.parts) - 1; i >= 0; i-- {
		if q := p.parts[i]; q.cmd != nil && q.cmd.Process != nil {
			_ = q.cmd.Process.Signal(syscall.SIGKILL) // it keeps nothing that anybody reads again
			<-q.done
		}
	}
	p.work.Wait()
	if p.api != nil {
		p.api.CloseIdleConnections()
	}
	p.family.end()
}

func newToken() string {
	b := make([]byte, 16)
	_, _ = io.ReadFull(rand.Reader, b) // never fails
	return hex.EncodeToString(b)
}

// kubeconfig is the file by which a user reaches the API server.
func kubeconfig(url string, authority []byte, user, token, namespace string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: kubetest
clusters:
- name: kubetest
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: kubetest
  context:
    cluster: kubetest
    user: %q
    namespace: %q
users:
- name: %q
  user:
    token: %q
`, url, base64.StdEncoding.EncodeToString(authority), user, namespace, user, token)
}
