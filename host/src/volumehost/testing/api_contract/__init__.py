"""What every ApiClient must do, as tests: the embedded store and a Kubernetes backend pass the same ones.

Subclass :class:`ApiClientContract` in a test module and give it a ``new_client`` fixture::

    class TestMyClient(ApiClientContract):
        @pytest.fixture
        def new_client(self) -> Callable[[], ApiClient]:
            return lambda: MyClient(...)
"""

from __future__ import annotations

from volumehost.testing.api_contract.fixtures import ContractFixtures
from volumehost.testing.api_contract.read_write import ReadWriteContract
from volumehost.testing.api_contract.watching import WatchContract

__all__ = ["ApiClientContract", "ContractFixtures", "ReadWriteContract", "WatchContract"]


class ApiClientContract(ReadWriteContract, WatchContract):
    """Everything that an ApiClient must do."""
