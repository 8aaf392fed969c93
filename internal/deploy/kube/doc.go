// Package kube starts engines as pods of a Kubernetes cluster.
//
//	s := kube.Settings{Image: "vllm/vllm-openai:v0.17.1", Pods: render.Pods{Namespace: "bench"}}
//	err := s.Validate()
//
// Invariant. What is started is what package render writes down: there is one source of
// manifests.
package kube
