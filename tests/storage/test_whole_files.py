"""Files are complete or absent, whoever writes beside: nobody can guess temporary names, and links lead to the file."""

import os
import stat
import threading

import numpy as np
import pytest

import condgrad as cg
from condgrad.cli import main
from condgrad.storage import whole_files

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs links and modes")


@pytest.fixture(scope="module")
def model():
    problem = cg.Problem(np.eye(300), np.ones(300), cg.losses.Squared(), cg.constraints.L2Ball(1.0))
    return cg.Model.of(problem, cg.minimize(problem, tol=1e-3))


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@posix_only
def test_planted_links_are_not_followed(model, tmp_path, monkeypatch):
    """Whoever may write to the folder knows the file and the process, but not the temporary name."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f"m.npz.{os.getpid()}.part", "m.npz.part", "m.npz.1.part"):
        (tmp_path / name).symlink_to(victim)
    cg.save_model(tmp_path / "m.npz", model)
    assert victim.read_text() == "precious" and not (tmp_path / "m.npz").is_symlink()
    monkeypatch.setattr(whole_files.secrets, "token_hex", lambda n_bytes: "guessed")  # even so
    (tmp_path / "other.npz.guessed.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        cg.save_model(tmp_path / "other.npz", model)
    assert victim.read_text() == "precious"


@posix_only
def test_a_link_that_nobody_has_named_is_replaced(tmp_path, capsys):
    """The copy of --cache has a name of its own choice: what a link of that name leads to is not written."""
    victim, text = tmp_path / "victim", tmp_path / "t.svm"
    victim.write_text("precious")
    text.write_text("1 1:1\n-1 2:1\n")
    (tmp_path / "t.svm.condgrad").symlink_to(victim)
    assert main(["fit", str(text), "--radius", "1", "--cache", "--quiet"]) == 0
    assert victim.read_text() == "precious" and not (tmp_path / "t.svm.condgrad").is_symlink()


@posix_only
def test_the_lock_of_a_conversion_is_no_link(tmp_path):
    victim, folder = tmp_path / "victim", tmp_path / "rows"
    victim.write_text("precious")
    folder.mkdir()
    (folder / "conversion.lock").symlink_to(victim)
    with pytest.raises(FileExistsError, match=r"conversion.lock' is a link, not a lock of a conversion; remove it"):
        cg.rows.convert((np.eye(3), np.ones(3)), folder)
    assert victim.read_text() == "precious"


@posix_only
def test_modes_are_kept_and_links_lead_to_the_file(model, tmp_path):
    before = os.umask(0o027)
    try:
        path, link = tmp_path / "m.npz", tmp_path / "link.npz"
        cg.save_model(path, model)
        assert mode_of(path) == 0o640
        for mode in (0o600, 0o664):
            path.chmod(mode)
            cg.save_model(path, model)
            assert mode_of(path) == mode
        path.write_bytes(b"old")
        link.symlink_to("m.npz")
        cg.save_model(link, model)
        assert link.is_symlink() and cg.load_model(path).objective == model.objective
        (tmp_path / "later.npz").symlink_to("new.npz")
        cg.save_model(tmp_path / "later.npz", model)
        assert mode_of(tmp_path / "new.npz") == 0o640
        assert sorted(path.name for path in tmp_path.iterdir()) == ["later.npz", "link.npz", "m.npz", "new.npz"]
    finally:
        os.umask(before)


@posix_only
def test_a_pipe_stays_what_it_is(model, tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    cg.save_model(pipe, model)
    reader.join(60)
    assert pipe.is_fifo()
    cg.save_model(tmp_path / "m.npz", model)
    assert read == [(tmp_path / "m.npz").read_bytes()]


def test_threads_that_save_one_path(model, tmp_path):
    path, faults = tmp_path / "m.npz", []
    cg.save_model(path, model)

    def save():
        try:
            for _ in range(15):
                cg.save_model(path, model)
        except OSError as error:
            faults.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert cg.load_model(path).objective == model.objective  # complete, whenever it is read
    assert not faults and [file.name for file in tmp_path.iterdir()] == ["m.npz"]
