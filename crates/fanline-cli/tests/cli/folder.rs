//! Temporary folders of tests.

use std::path::PathBuf;

/// A folder of one test, removed if the test passes, and left for inspection if it fails.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("fanline-cli-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // An earlier process with the same id may have left this folder.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Returns the path of a file in the folder, as an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the folder of the test is left: {}", self.0.display());
        } else {
            // If this fails, the system cleans its temporary folder later.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
