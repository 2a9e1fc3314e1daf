"""One look at an attachment serves all steps of an operation, and no other one."""

from volumehost_csi.seen_attachments import SECONDS, SeenAttachments


def test_what_was_seen_serves_for_a_while_and_is_the_callers_own() -> None:
    now = [100.0]
    seen = SeenAttachments(lambda: now[0])
    assert seen.get("csi-1") is None
    metadata = {"path": "/dev/x"}
    seen.put("csi-1", metadata)
    metadata["path"] = "changed"
    found = seen.get("csi-1")
    assert found == {"path": "/dev/x"}
    found["more"] = "added"
    assert seen.get("csi-1") == {"path": "/dev/x"}
    now[0] += SECONDS
    assert seen.get("csi-1") is None


def test_an_attachment_without_metadata_is_seen_too_and_one_that_has_gone_is_forgotten() -> None:
    seen = SeenAttachments()
    seen.put("csi-1", {})
    assert seen.get("csi-1") == {}
    seen.forget("csi-1")
    assert seen.get("csi-1") is None
