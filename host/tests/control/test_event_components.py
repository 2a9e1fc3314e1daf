"""Who reports the events of the controllers (EVENT-01)."""

from volumehost.control.assembly import ATTACH_COMPONENT, COMPONENT, EXPAND_COMPONENT, all_controllers


def test_event01_each_controller_reports_under_its_own_name(world):
    told = []

    def sink(component):
        return lambda _involved, _type, reason, _message: told.append((component, reason))

    reporting = {component: sink(component) for component in (ATTACH_COMPONENT, EXPAND_COMPONENT)}
    context = world.context()
    controllers = {each.name: each for each in all_controllers(context, reporting)}
    for name in ("attacher", "expander", "binder", "reclaimer"):
        controllers[name].controller._context.event(None, "Normal", name, "m")
    assert told == [("attachdetach-controller", "attacher"), ("volume_expand", "expander")]
    assert [event.reason for event in world.recorder.events] == ["binder", "reclaimer"]
    assert COMPONENT == "persistentvolume-controller"
