"""The fixtures for authors, used as an author uses them: in tests of a plugin, run by pytest."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.root


@pytest.fixture
def run(pytester, support):
    """Runs a test module with the complete plugin at hand."""

    def run(source, *arguments):
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    return run


def test_a_plugin_is_tested_on_a_real_host_with_real_mounts(run):
    run(
        """
        import os
        import pytest
        from complete_plugin import CompletePlugin, NAME
        from volumehost import MounterArgs, Spec

        pytestmark = pytest.mark.usefixtures("volumehost_namespace", "volumehost_leaks")

        def test_mounts(volumehost_host, volumehost_pod):
            plugin = CompletePlugin()
            plugin.init(volumehost_host)
            pod = volumehost_pod(f"work=flexVolume:{NAME},handle=vol-1", fs_group=2000)
            spec = Spec.from_volume(pod.spec.volumes[0])
            attacher = plugin.new_attacher()
            device = plugin.new_device_mounter()
            path = device.get_device_mount_path(spec)
            device.mount_device(spec, attacher.attach(spec, "node"), path, None)
            mounter = plugin.new_mounter(spec, pod)
            mounter.set_up(MounterArgs(fs_group=2000))
            assert volumehost_host.get_mounter().is_mount_point(mounter.get_path())
            assert os.stat(mounter.get_path()).st_gid == 2000
            plugin.new_unmounter(spec.name(), pod.metadata.uid).tear_down()
            device.unmount_device(path)
        """
    ).assert_outcomes(passed=1)


def test_the_plugin_manager_loads_what_the_author_names(run):
    run(
        """
        import pytest
        from complete_plugin import CompletePlugin, NAME
        from volumehost import Spec

        @pytest.fixture
        def volumehost_plugins():
            return [CompletePlugin]

        def test_found(volumehost_plugin_manager, volumehost_host, volumehost_pod):
            pod = volumehost_pod(f"work=flexVolume:{NAME}")
            plugin = volumehost_plugin_manager.find_plugin_by_spec(Spec.from_volume(pod.spec.volumes[0]))
            assert plugin.name == NAME
            assert plugin.plugin.host is volumehost_host
            assert [each.name for each in volumehost_plugin_manager.plugins()] == [NAME]
        """
    ).assert_outcomes(passed=1)


def test_the_plugin_manager_loads_what_the_command_line_names(run):
    run(
        """
        def test_found(volumehost_plugin_manager):
            assert [each.name for each in volumehost_plugin_manager.plugins()] == ["example.com/complete"]
        """,
        "--volume-plugin",
        "complete_plugin:CompletePlugin",
        "-k",
        "test_found",
    ).assert_outcomes(passed=1, deselected=71)


def test_the_plugin_manager_finds_what_is_installed_when_nothing_is_named(run):
    run(
        """
        def test_found(volumehost_plugin_manager):
            assert volumehost_plugin_manager.find_plugin_by_name("kubernetes.io/empty-dir").name
        """
    ).assert_outcomes(passed=1)


def test_plugins_that_wrap_others_find_the_installed_ones(run):
    run(
        """
        import os
        from volumehost import MounterArgs, Spec

        def test_wrapped(volumehost_namespace, volumehost_host, volumehost_pod):
            pod = volumehost_pod("inner=emptyDir")
            spec = Spec.from_volume(pod.spec.volumes[0])
            directory = volumehost_host.get_pod_volume_dir(pod.metadata.uid, "example.com/outer", "outer")
            volumehost_host.new_wrapper_mounter("outer", spec, pod).set_up_at(directory, MounterArgs())
            assert os.path.isdir(directory)
            volumehost_host.new_wrapper_unmounter("outer", spec, pod.metadata.uid).tear_down_at(directory)
            assert not os.path.exists(directory)
        """
    ).assert_outcomes(passed=1)


def test_a_plugin_that_does_not_load_or_not_shut_down_fails_the_test(run):
    result = run(
        """
        import pytest
        from volumehost import hookimpl
        from complete_plugin import CompletePlugin

        class Refusing(CompletePlugin):
            @hookimpl
            def init(self, host):
                raise OSError("no array")

        class Clinging(CompletePlugin):
            @hookimpl
            def shutdown(self):
                raise OSError("still busy")

        @pytest.fixture(params=[Refusing, Clinging])
        def volumehost_plugins(request):
            return [request.param]

        def test_it(volumehost_plugin_manager):
            pass
        """
    )
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines_random(["*no array*", "*still busy*"])


def test_the_api_of_the_host_can_be_given(run):
    run(
        """
        import pytest
        from volumehost.api.objects import ObjectMeta, Secret
        from volumehost.api.store import EmbeddedStore

        @pytest.fixture
        def volumehost_api(tmp_path):
            with EmbeddedStore(f"{tmp_path}/store.sqlite3") as store:
                store.create(Secret(metadata=ObjectMeta(name="token"), string_data={"key": "value"}))
                yield store

        def test_secret(volumehost_host):
            assert volumehost_host.get_secret_func()("default", "token").data == {"key": b"value"}
        """
    ).assert_outcomes(passed=1)


def test_without_that_there_is_no_api_and_the_default_configuration(run):
    run(
        """
        from volumehost import VolumeConfig

        def test_host(volumehost_host):
            assert volumehost_host.get_kube_client() is None
            assert volumehost_host.get_volume_config("example.com/any") == VolumeConfig()
        """
    ).assert_outcomes(passed=1)


def test_what_a_test_leaves_behind_is_an_error_that_names_it(run):
    result = run(
        """
        import os
        import pytest
        from volumehost.mount.mounter import LinuxMounter

        pytestmark = pytest.mark.usefixtures("volumehost_namespace", "volumehost_leaks")

        def test_leaks(tmp_path):
            os.open(tmp_path, os.O_RDONLY)
            LinuxMounter().mount("leak", str(tmp_path), "tmpfs")

        def test_is_clean():
            pass
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_leaks*"])
    result.stdout.fnmatch_lines(["the test left behind:", "  mount *test_leaks0 (tmpfs from leak)", "  descriptor *"])


def test_without_the_privilege_tests_that_mount_are_skipped_and_say_why(pytester):
    """Root without CAP_SYS_ADMIN, as in many containers."""
    pytester.makepyfile(
        """
        def test_mounts(volumehost_namespace): raise AssertionError
        def test_other(volumehost_host): pass
        """
    )
    done = subprocess.run(
        [
            "setpriv",
            "--bounding-set",
            "-sys_admin",
            "--",
            sys.executable,
            "-m",
            "pytest",
            "-rs",
            "-p",
            "no:cacheprovider",
        ],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "1 passed, 1 skipped" in done.stdout
    assert (
        "tests that mount: unshare of the mount namespace failed: the privilege CAP_SYS_ADMIN is missing" in done.stdout
    )


def test_a_test_process_has_mounts_of_its_own(pytester):
    pytester.makepyfile(
        """
        import os, subprocess
        from volumehost.testing.namespaces import has_own_mounts

        def test_before():
            assert not has_own_mounts()

        def test_mounts(volumehost_namespace, tmp_path):
            assert has_own_mounts()
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], check=True)
            outside = open(f"/proc/{os.getppid()}/mountinfo").read()
            assert str(tmp_path) in open("/proc/self/mountinfo").read()
            assert str(tmp_path) not in outside
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly").assert_outcomes(passed=2)
