"""All results below a folder in one page: `hopforge report`.

`find` reads the files, `explore` chooses what is plotted first, `page` puts the page together.

May import: sim.run, sim.hits, sim.programs, sim.packet and what lies below. Read first: `find.py`.
"""

from hopforge.sim.pages.find import Found, ResultSet, check_folder, find_results
from hopforge.sim.pages.page import result_page

__all__ = ["Found", "ResultSet", "check_folder", "find_results", "result_page"]
