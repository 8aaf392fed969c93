document.querySelectorAll(".cmd").forEach(function (box) {
  if (!navigator.clipboard) return; // absent on plain http pages
  var button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", function () {
    navigator.clipboard.writeText(box.querySelector("code").textContent).then(function () {
      button.textContent = "Copied";
      setTimeout(function () { button.textContent = "Copy"; }, 1500);
    });
  });
  box.prepend(button);
});
if (matchMedia("(max-width: 72rem)").matches) {
  document.querySelectorAll("nav details").forEach(function (d) { d.open = false; });
}
function reach() { // only what scrolls is a stop for the keyboard
  document.querySelectorAll(".tablebox,.plotbox,pre").forEach(function (box) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
}
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);
reach();
