// Everything is defined: fill the page.

showHead();
showChart();
showCompactions();
showRequests();
showTree();
showSearch();
