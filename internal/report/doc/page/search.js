(function () {
  var index = window.perflabIndex, form = document.querySelector("form[role=search]"), list = document.getElementById("hits");
  if (!index || !form) return; // the file beside the pages is not there
  var box = form.querySelector("input"), root = document.querySelector("script[data-root]").dataset.root, most = 20;
  form.hidden = false;
  function show() {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean), found = [];
    if (words.length) found = index.filter(function (row) {
      var text = (row[0] + " " + row[2]).toLowerCase();
      return words.every(function (w) { return text.indexOf(w) >= 0; });
    });
    list.textContent = "";
    list.hidden = !words.length;
    found.slice(0, most).forEach(function (row) {
      var item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("small");
      link.href = root + row[1];
      link.textContent = row[0];
      text.textContent = row[2].length > 140 ? row[2].slice(0, 139) + "\u2026" : row[2];
      item.append(link, text);
      list.append(item);
    });
    var note = found.length > most ? "and " + (found.length - most) + " more: write another word" : found.length ? "" : "Nothing has all of these words.";
    if (note) list.append(Object.assign(document.createElement("li"), { textContent: note }));
  }
  form.addEventListener("submit", function (e) { e.preventDefault(); show(); });
  box.addEventListener("input", show);
  show(); // a browser may keep what was written
})();
