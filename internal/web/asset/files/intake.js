// The page Import: files that are dropped anywhere on it are sent as chosen ones are.
//
//   <form method="post" enctype="multipart/form-data" data-drop> <div class="drop"> <input type="file" name="files" multiple>
//
// Without JavaScript the input takes files by itself.
function drops(form) {
  const box = form.querySelector(".drop"), input = form.querySelector("input[type=file]");
  const holds = (e) => e.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (e) => {
    if (!holds(e)) return;
    e.preventDefault();
    box.classList.add("over");
  });
  document.addEventListener("dragleave", (e) => { if (!e.relatedTarget) box.classList.remove("over"); });
  document.addEventListener("drop", (e) => {
    if (!holds(e)) return;
    e.preventDefault();
    box.classList.remove("over");
    if (form.querySelector("button[disabled]")) return;
    input.files = e.dataTransfer.files;
    form.requestSubmit();
  });
}

for (const f of document.querySelectorAll("form[data-drop]")) drops(f);
