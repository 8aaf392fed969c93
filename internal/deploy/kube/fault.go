package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"perflab/internal/deploy"
)

// explain makes of an error of the API an *InfraError with what to do, or gives ctx's cause.
func (c *cluster) explain(op string, err error) error {
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok {
		return infra
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", op, err)
	}
	status, ok := statusOfAPI(err)
	if !ok {
		return c.unanswered(op, err)
	}
	e := &deploy.InfraError{Op: op, Err: errors.New(sentence(status.Message)), Lasting: true}
	switch {
	case apierrors.IsUnauthorized(err):
		e.Err = errors.New("the cluster does not know who asks: " + sentence(status.Message))
		e.Help = "log in again, or correct kubeconfig or context"
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.Help = "the namespace " + c.namespace + " is being deleted: choose another, or create it again when it is gone"
	case apierrors.IsNotFound(err) && strings.Contains(status.Message, "namespaces"):
		e.Help = "create it with kubectl create namespace " + c.namespace + ", or correct namespace"
	case apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "" || strings.Contains(status.Message, "the server could not find the requested resource"):
		e.Help = "the cluster lacks this kind of object: for replicas over several machines install LeaderWorkerSet, see perflab kube check"
	case apierrors.IsForbidden(err) || refusalText.MatchString(status.Message):
		return refused(op, status.Message)
	case mistyped(status):
		e.Help = "correct what the study says of the pods: the cluster does not take it"
	case apierrors.IsTooManyRequests(err) || status.Code >= http.StatusInternalServerError:
		e.Lasting, e.Help = false, "the API server has too much to do, or is not well: see kubectl get --raw /readyz"
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		e.Help = "correct what the study says of the pods: the cluster does not take it"
	default:
		e.Lasting = false
		e.Help = "see whether kubectl may do the same"
	}
	return e
}

// unanswered is the error of a request to which no API server has answered.
func (c *cluster) unanswered(op string, err error) *deploy.InfraError {
	text := sentence(err.Error())
	e := &deploy.InfraError{Op: op, Err: fmt.Errorf("the API server at %s does not answer: %s", c.config.Host, text), Help: "see kubectl cluster-info, and correct kubeconfig or context"}
	switch {
	case credentials(err):
		e.Err, e.Lasting = errors.New("the kubeconfig gives no credentials: "+text), true
		e.Help = "log in again, and see whether kubectl get pods works in this shell"
	case untrusted(err):
		e.Err, e.Lasting = fmt.Errorf("the certificate of the API server at %s is not trusted: %s", c.config.Host, text), true
		e.Help = "correct certificate-authority or server of the cluster in the kubeconfig"
	}
	return e
}

// credentials reports whether the program that a kubeconfig names for credentials failed.
func credentials(err error) bool { return strings.Contains(err.Error(), "getting credentials") }

// untrusted reports whether the server's certificate is not one of the cluster's.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// What admission says.
var (
	refusalText = regexp.MustCompile(`(?i)admission webhook|ValidatingAdmissionPolicy|exceeded quota|violates PodSecurity`)
	rightText   = regexp.MustCompile(`(?s)^.*cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?`)
	webhookText = regexp.MustCompile(`admission webhook "([^"]+)"`)
)

// refused is the error of an object that the cluster would not take: for want of a right, by a quota, by a webhook.
func refused(op, message string) *deploy.InfraError {
	e := &deploy.InfraError{Op: op, Err: errors.New(sentence(message)), Lasting: true}
	switch m, hook := rightText.FindStringSubmatch(message), webhookText.FindStringSubmatch(message); {
	case hook != nil:
		e.Help = "the webhook " + hook[1] + " of the cluster refuses it: do what it says, in pod where it is about pods"
	case strings.Contains(message, "must specify"):
		e.Help = "the quota of the namespace wants every container to say what it takes: set cpu and memory"
	case strings.Contains(message, "exceeded quota"):
		e.Lasting = false
		e.Help = "wait until others need less, ask for less (cpu, memory, shm_size), or have the quota of the namespace raised"
	case strings.Contains(message, "violates PodSecurity"):
		e.Help = "the namespace forbids such pods: use a claim instead of a directory of the node in mounts, or set securityContext in pod"
	case strings.Contains(message, "ValidatingAdmissionPolicy"):
		e.Help = "a policy of the cluster refuses it: do what it says"
	case m != nil:
		e.Err = fmt.Errorf("this account may not %s %s", m[1], m[2])
		e.Help = "have the Role that perflab kube role prints bound to the account: it lacks the verb " + m[1] + " of " + m[2]
	default:
		e.Help = "the cluster forbids it: see perflab kube check"
	}
	return e
}

// programFaults are how a node says that a container cannot start its program.
var programFaults = deploy.ProgramFaults{
	NotFound:   regexp.MustCompile(`executable file not found in|exec: ".*": stat .*: no such file or directory|exec .* no such file or directory|no such file or directory`),
	NotAllowed: regexp.MustCompile(`permission denied`),
}

// explainProgram says what to do about a container that could not be started.
func explainProgram(e *deploy.InfraError, p *corev1.Pod, container, message string) {
	program, image := "the engine's program", "the image"
	for _, c := range p.Spec.Containers {
		if c.Name == container {
			image = "the image " + c.Image
			if len(c.Command) > 0 {
				program = c.Command[0]
			}
		}
	}
	help, kind := programFaults.Explain(program, image, message)
	if kind == nil {
		e.Help = "see kubectl describe pod " + p.Name + " -n " + p.Namespace
		return
	}
	e.Help, e.Err = help, &deploy.ProgramError{Err: e.Err, Kind: kind}
}
