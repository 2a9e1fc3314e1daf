"""The conformance run as a part of pytest: what is collected, selected, skipped and said."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.root

PLUGIN = "complete_plugin:CompletePlugin"
NAME = "example.com/complete"
SECRET = """
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: correct-horse-battery}
"""


def test_a_good_plugin_passes_every_check(run_kit, checks, all_volumes):
    result = run_kit(PLUGIN, NAME, "-rs", volumes=all_volumes)
    outcomes = result.parseoutcomes()
    assert outcomes.keys() == {"passed", "skipped"}
    assert outcomes["skipped"] == 1
    result.stdout.fnmatch_lines("SKIPPED*a refresh cannot be made to fail: *")
    for_both = sum(check.of_volume and not check.mode for check in checks.values())
    assert outcomes["passed"] == len(checks) + for_both - 1


def test_a_plugin_that_refreshes_what_it_reads_from_the_api(run_kit, filesystem_volume):
    volumes = filesystem_volume + SECRET
    result = run_kit(
        "good_variants:RefreshingPlugin", NAME, "-rs", "-k", "refresh or secrets or killed", volumes=volumes
    )
    outcomes = result.parseoutcomes()
    assert (outcomes.pop("passed"), outcomes.keys()) == (6, {"deselected"})


def test_ids_are_the_plugins_name_and_what_must_hold(run_kit):
    result = run_kit(PLUGIN, NAME, "--collect-only", "-q")
    lines = [line for line in result.outlines if line.startswith(f"{NAME}::")]
    assert f"{NAME}::set_up_twice_is_harmless" in lines
    assert len(lines) == len(set(lines))


def test_ids_name_the_volume_where_there_are_several(run_kit, all_volumes):
    result = run_kit(PLUGIN, NAME, "--collect-only", "-q", volumes=all_volumes)
    assert f"{NAME}::the_volume_name_is_stable[work]" in result.outlines
    assert f"{NAME}::the_volume_name_is_stable[raw]" in result.outlines
    assert f"{NAME}::set_up_twice_is_harmless[work]" in result.outlines
    assert f"{NAME}::set_up_twice_is_harmless[raw]" not in result.outlines


@pytest.mark.parametrize(
    ("selection", "passed"),
    [
        ([f"{NAME}::it_loads"], 1),
        ([f"{PLUGIN}::it_loads"], 1),
        ([f"{NAME}::the_volume_name_is_stable"], 2),
        ([f"{NAME}::the_volume_name_is_stable[raw]"], 1),
        ([f"{NAME}::it_loads", f"{NAME}::its_name_is_constant"], 2),
        (["-k", "name_is_stable and raw"], 1),
    ],
)
def test_checks_are_selected_as_tests_are(run_kit, all_volumes, selection, passed):
    result = run_kit(PLUGIN, *selection, volumes=all_volumes)
    outcomes = result.parseoutcomes()
    assert (outcomes.pop("passed"), outcomes.keys()) == (passed, {"deselected"})


def test_plugins_of_one_name_are_told_apart_by_where_they_are(run_kit):
    other = "good_variants:ConfiguredPlugin"
    result = run_kit(PLUGIN, "--volume-plugin", other, f"{other}::it_loads", "-v")
    result.stdout.fnmatch_lines(f"{other}::it_loads PASSED*")
    assert result.parseoutcomes()["passed"] == 1
    assert run_kit(PLUGIN, "--volume-plugin", other, PLUGIN, other, "-k", "it_loads").parseoutcomes()["passed"] == 2


def test_a_module_can_be_a_plugin(run_kit, pytester):
    """A module whose functions are hooks has no class to make anew; it can be tested all the same."""
    pytester.makepyfile(
        module_plugin="""
        from volumehost import hookimpl
        from complete_plugin import CompletePlugin

        plugin = CompletePlugin()
        for name in dir(CompletePlugin):
            if getattr(getattr(CompletePlugin, name), "volumehost_impl", None):
                globals()[name] = getattr(plugin, name)
        """
    )
    pytester.syspathinsert()
    result = run_kit("module_plugin", NAME, "-k", "loads or twice or restart or new_plugin")
    outcomes = result.parseoutcomes()
    assert outcomes.keys() == {"passed", "deselected"}
    assert outcomes["passed"] > 5


def test_what_failed_is_run_again_with_lf(pytester, run_kit):
    plugin = "broken_lifecycle:set_up_twice_is_harmless"
    options = "-p", "cacheprovider", NAME, "-k", "twice_is_harmless"
    assert run_kit(plugin, *options).parseoutcomes()["failed"] == 1
    again = run_kit(plugin, *options, "--lf").parseoutcomes()
    assert (again["failed"], again.get("passed", 0)) == (1, 0)


def test_an_id_that_no_check_has_selects_nothing(run_kit):
    assert run_kit(PLUGIN, f"{NAME}::no_such_check").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_an_id_is_understood_as_it_is_shown_in_another_directory(run_kit, pytester, monkeypatch):
    pytester.makeini("[pytest]")
    (pytester.path / "sub").mkdir()
    monkeypatch.chdir(pytester.path / "sub")
    result = run_kit(PLUGIN, f"../{NAME}::it_loads", volumes="")
    assert result.parseoutcomes()["passed"] == 1


def test_the_authors_own_tests_run_too_unless_only_checks_are_named(run_kit, pytester):
    pytester.makepyfile("def test_own(): pass")
    assert run_kit(PLUGIN, "-k", "test_own or it_loads").parseoutcomes()["passed"] == 2
    assert run_kit(PLUGIN, "-m", "not volume_conformance").parseoutcomes()["passed"] == 1
    result = run_kit(PLUGIN, f"{NAME}::it_loads")
    assert "test_own" not in result.stdout.str()
    assert result.parseoutcomes()["passed"] == 1
    both = run_kit(PLUGIN, f"{NAME}::it_loads", str(next(pytester.path.glob("test_*.py"))))
    assert both.parseoutcomes()["passed"] == 2


def test_without_a_plugin_nothing_is_added(pytester):
    pytester.makepyfile(
        """
        def test_own(pytestconfig):
            assert not pytestconfig.pluginmanager.has_plugin("volumehost-conformance")
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_without_volumes_what_needs_one_is_skipped_and_says_so(run_kit):
    result = run_kit(PLUGIN, NAME, "-rs", volumes="")
    outcomes = result.parseoutcomes()
    assert outcomes.keys() == {"passed", "skipped"}
    assert outcomes["skipped"] > 30
    result.stdout.fnmatch_lines(f"SKIPPED*no volume of {NAME} was given: --volume-spec FILE")


def test_interfaces_that_the_plugin_lacks_are_skipped_and_say_so(run_kit, pytester):
    pytester.makepyfile(
        small="""
        from complete_plugin import CompletePlugin
        class SmallPlugin(CompletePlugin):
            pass
        for hook in ("new_attacher", "new_detacher", "can_attach", "verify_exhausted_resource"):
            setattr(SmallPlugin, hook, None)
        """
    )
    pytester.syspathinsert()
    result = run_kit("small:SmallPlugin", NAME, "-rs", "-k", "attached")
    result.stdout.fnmatch_lines("SKIPPED*it is no AttachableVolumePlugin")
    assert "failed" not in result.parseoutcomes()


def test_when_the_plugin_does_not_load_one_check_says_why(run_kit):
    result = run_kit("good_variants:UnloadablePlugin", "-rs")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert "passed" not in outcomes
    result.stdout.fnmatch_lines(['*volume plugin has invalid name: "complete": must have a prefix*'])
    result.stdout.fnmatch_lines("SKIPPED*the plugin does not load, see it_loads")


def test_a_verdict_says_what_must_hold_and_what_happened(run_kit):
    result = run_kit("broken_lifecycle:set_up_twice_is_harmless", f"{NAME}::set_up_twice_is_harmless")
    result.stdout.fnmatch_lines(
        [
            "the second set_up made 1 more mount(s): *",
            "",
            "must hold: A set_up of a volume that is set up succeeds, keeps its content*(VOL-05, MOUNTOP-15)",
            "FAILED example.com/complete::set_up_twice_is_harmless - the second set_up *",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "lifecycle_checks.py" not in result.stdout.str()


def test_an_exception_of_the_plugin_is_shown_where_it_was_raised(run_kit):
    result = run_kit("good_variants:FailingPlugin", f"{NAME}::it_can_be_set_up")
    result.stdout.fnmatch_lines(
        ["*mounter.set_up(args)", "E *reaching the array: no such server", "*good_variants.py:*: MountError"]
    )
    assert "check_trial" not in result.stdout.str()


def test_a_plugin_that_hangs_fails_its_check_and_not_the_run(run_kit):
    ids = [f"{NAME}::it_can_be_set_up", f"{NAME}::its_name_is_constant"]
    result = run_kit("good_variants:HangingPlugin", "--volume-timeout", "2", *ids)
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes()["passed"] == 1
    result.stdout.fnmatch_lines("*did not come back within 2 s*")


def test_a_plugin_that_hangs_everywhere_holds_up_neither_collection_nor_cleaning_up(run_kit, all_volumes):
    ids = [f"{NAME}::it_supports_its_own_volume[work]", f"{NAME}::it_can_be_set_up", f"{NAME}::it_loads"]
    result = run_kit("good_variants:SilentPlugin", "--volume-timeout", "2", *ids, volumes=all_volumes)
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"]) == (1, 2)


def test_a_plugin_that_ends_the_process_fails_its_check_and_not_the_run(run_kit):
    ids = [f"{NAME}::it_can_be_set_up", f"{NAME}::set_up_killed_at_any_step_can_be_repeated", f"{NAME}::it_loads"]
    outcomes = run_kit("good_variants:ExitingPlugin", *ids).parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"]) == (2, 1)


def test_the_header_says_what_is_tested(run_kit):
    run_kit(PLUGIN, f"{NAME}::it_loads").stdout.fnmatch_lines(f"volume plugin: {NAME} ({PLUGIN})")


def test_the_host_is_configured_by_a_fixture_of_the_author(run_kit, pytester):
    chosen = "good_variants:ConfiguredPlugin", f"{NAME}::provisioned_volumes_are_distinct", "-rs"
    result = run_kit(*chosen)
    result.stdout.fnmatch_lines("SKIPPED*provisioning is disabled; see the fixture volumehost_volume_config")
    pytester.makeconftest(
        """
        import pytest
        from volumehost import VolumeConfig

        @pytest.fixture
        def volumehost_volume_config():
            return VolumeConfig(provisioning_enabled=True)
        """
    )
    assert run_kit(*chosen).parseoutcomes()["passed"] == 1


def test_nothing_of_the_checks_is_left_mounted_even_when_they_fail(run_kit, volumehost_leaks):
    result = run_kit("broken_lifecycle:tear_down_leaves_nothing", f"{NAME}::tear_down_leaves_nothing")
    assert result.parseoutcomes()["failed"] == 1
    assert volumehost_leaks.leaks() == []
