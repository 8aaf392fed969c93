package deploy

// CgroupUsable says why no cgroup can be made for an engine here.
func CgroupUsable() error {
	f, err := newCgroup("perflab-test")
	if err != nil {
		return err
	}
	removeCgroup(f.Name())
	return f.Close()
}
