package kubetest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mount makes the directories of the pod's volumes and returns them by their names; an error
// says what is not there yet.
func (p *pod) mount() (map[string]string, error) {
	dirs := map[string]string{}
	for _, v := range p.object.Spec.Volumes {
		dir, err := p.volume(v)
		if err != nil {
			return nil, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
		}
		dirs[v.Name] = dir
	}
	return dirs, nil
}

// volume makes the directory of a volume.
func (p *pod) volume(v corev1.Volume) (string, error) {
	own := filepath.Join(p.dir, "volumes", v.Name)
	switch s := v.VolumeSource; {
	case s.HostPath != nil:
		return s.HostPath.Path, p.hostPath(*s.HostPath)
	case s.PersistentVolumeClaim != nil:
		return p.claim(s.PersistentVolumeClaim.ClaimName)
	case s.Image != nil:
		return p.node.c.imageFiles(s.Image.Reference)
	}
	files, err := p.files(v.VolumeSource)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(own, 0o755); err != nil {
		return "", err
	}
	for name, text := range files {
		path := filepath.Join(own, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return own, nil
}

// files are those of a volume that the kubelet writes itself.
func (p *pod) files(s corev1.VolumeSource) (files map[string]string, err error) {
	switch {
	case s.EmptyDir != nil:
		return nil, nil
	case s.ConfigMap != nil:
		files, err = p.configMap(s.ConfigMap.Name)
		return picked(files, err, s.ConfigMap.Items, s.ConfigMap.Optional)
	case s.Secret != nil:
		files, err = p.secret(s.Secret.SecretName)
		return picked(files, err, s.Secret.Items, s.Secret.Optional)
	case s.Projected != nil:
		return p.projected(s.Projected.Sources)
	case s.DownwardAPI != nil:
		return p.downward(s.DownwardAPI.Items)
	}
	return nil, errors.New("kubetest does not know this kind of volume")
}

// picked are the files of the items, all without any.
func picked(data map[string]string, err error, items []corev1.KeyToPath, optional *bool) (map[string]string, error) {
	if err != nil {
		if isTrue(optional) {
			return nil, nil
		}
		return nil, err
	}
	if len(items) == 0 {
		return data, nil
	}
	files := map[string]string{}
	for _, item := range items {
		text, there := data[item.Key]
		if !there && !isTrue(optional) {
			return nil, fmt.Errorf("references non-existent config key: %s", item.Key)
		}
		files[item.Path] = text
	}
	return files, nil
}

func (p *pod) downward(items []corev1.DownwardAPIVolumeFile) (map[string]string, error) {
	files := map[string]string{}
	for _, item := range items {
		if item.FieldRef == nil {
			return nil, errors.New("kubetest writes fields of a pod into files, not resources")
		}
		text, err := p.field(item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		files[item.Path] = text
	}
	return files, nil
}

// projected are files of several sources, as each pod has for its service account.
func (p *pod) projected(sources []corev1.VolumeProjection) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range sources {
		var files map[string]string
		var err error
		switch {
		case s.ServiceAccountToken != nil:
			var token string
			token, err = p.node.c.plane.accountToken(p.node.ctx, p.object.Namespace, p.object.Spec.ServiceAccountName)
			files = map[string]string{s.ServiceAccountToken.Path: token}
		case s.ConfigMap != nil:
			files, err = p.configMap(s.ConfigMap.Name)
			files, err = picked(files, err, s.ConfigMap.Items, s.ConfigMap.Optional)
		case s.Secret != nil:
			files, err = p.secret(s.Secret.Name)
			files, err = picked(files, err, s.Secret.Items, s.Secret.Optional)
		case s.DownwardAPI != nil:
			files, err = p.downward(s.DownwardAPI.Items)
		default:
			err = errors.New("kubetest does not know this kind of projected volume")
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// hostPath checks that a directory of this machine is there, or makes it.
func (p *pod) hostPath(s corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if s.Type != nil {
		kind = *s.Type
	}
	switch info, err := os.Stat(s.Path); {
	case kind == corev1.HostPathDirectoryOrCreate || kind == corev1.HostPathUnset && errors.Is(err, os.ErrNotExist):
		return os.MkdirAll(s.Path, 0o755)
	case kind == corev1.HostPathDirectory && (err != nil || !info.IsDir()):
		return fmt.Errorf("hostPath type check failed: %s is not a directory", s.Path)
	case kind == corev1.HostPathFile && (err != nil || !info.Mode().IsRegular()):
		return fmt.Errorf("hostPath type check failed: %s is not a file", s.Path)
	}
	return nil
}

// claim is the directory of the volume that a claim is bound to.
func (p *pod) claim(name string) (string, error) {
	api := p.node.c.plane.api
	var claim corev1.PersistentVolumeClaim
	if err := api.read(p.node.ctx, claimKind, p.object.Namespace, name, &claim); err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return "", fmt.Errorf("claim %s is not bound", name)
	}
	var volume corev1.PersistentVolume
	if err := api.read(p.node.ctx, volumeKind, "", claim.Spec.VolumeName, &volume); err != nil {
		return "", err
	}
	if volume.Spec.HostPath == nil {
		return "", fmt.Errorf("kubetest mounts volumes that are directories of this machine, which %s is not", volume.Name)
	}
	return volume.Spec.HostPath.Path, nil
}

// secret is what a Secret holds.
func (p *pod) secret(name string) (map[string]string, error) {
	var s corev1.Secret
	if err := p.look(secretKind, "secret", name, &s); err != nil {
		return nil, err
	}
	data := map[string]string{}
	for key, value := range s.Data {
		data[key] = string(value)
	}
	return data, nil
}

// configMap is what a ConfigMap holds.
func (p *pod) configMap(name string) (map[string]string, error) {
	var m corev1.ConfigMap
	if err := p.look(configKind, "configmap", name, &m); err != nil {
		return nil, err
	}
	return m.Data, nil
}

// look reads an object of the pod's namespace, with the kubelet's words where it is missing.
func (p *pod) look(kind schema.GroupVersionResource, word, name string, into any) error {
	err := p.node.c.plane.api.read(p.node.ctx, kind, p.object.Namespace, name, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %q not found", word, name)
	}
	return err
}
